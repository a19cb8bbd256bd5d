/** Watches the workers that run jobs of this ingress: pings the silent ones, and tells dead or frozen workers from NATS failures. */
import type { Nats } from "../../nats/Nats.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import { encodeControl } from "../protocol/Frame.ts"
import * as Subjects from "../protocol/Subjects.ts"
import * as Timings from "../protocol/Timings.ts"
import type { OpenJob } from "./OpenJob.ts"
import { type WorkerLink, WorkerLinks } from "./WorkerLinks.ts"

type Link = WorkerLink<OpenJob>

/** A NATS server that does not answer for this long, in milliseconds, is stalled, so silent workers do not count as lost. */
const stalledMs = 1_000

export interface WorkerWatchOptions {
  readonly nats: Nats["Service"]
  readonly now: () => number
  /** A worker's NATS server, if known. */
  readonly serverOf: (worker: string) => string | undefined
  /** The worker is dead or frozen. */
  readonly onLost: (link: Link) => void
  /** The worker is silent, perhaps because of its NATS server. Runs at every tick. */
  readonly onAway: (link: Link) => void
  /** This ingress's NATS server has answered after a stall, which explains the silences. */
  readonly onStallEnd: () => void
  /** All known workers have answered since the reconnect, and so have sent again what was lost. */
  readonly onAllHeard: () => void
}

export class WorkerWatch {
  readonly links: WorkerLinks<OpenJob>
  readonly #options: WorkerWatchOptions
  /** Workers that have not answered since the reconnect. */
  readonly #unheard = new Set<string>()
  /** When the NATS server was pinged; `undefined` once it has answered. */
  #askedAt: number | undefined

  constructor(options: WorkerWatchOptions) {
    this.#options = options
    this.links = new WorkerLinks(options.now)
  }

  /** Whether this ingress's NATS server has not answered a ping for `stalledMs`. */
  isServerStalled(): boolean {
    return this.#askedAt !== undefined && this.#options.now() - this.#askedAt > stalledMs
  }

  heard(worker: string): void {
    const link = this.links.find(worker)
    if (link !== undefined) this.links.markHeard(link)
    if (this.#unheard.delete(worker) && this.#unheard.size === 0) this.#options.onAllHeard()
  }

  /** The worker's subject has no listener. */
  missing(worker: string): void {
    const link = this.links.find(worker)
    if (link !== undefined && this.#options.nats.isSettled() && this.links.isGone(link)) this.#options.onLost(link)
  }

  /** Runs at every tick, unless NATS is unreachable or this process was stalled itself. */
  check(): void {
    for (const [link, silentMs] of [...this.links.silent()]) {
      this.#pingServer()
      const mostMs = this.#isServerSuspected(link) ? Timings.serverChangeWithinMs : Timings.pongWithinMs
      if (silentMs > mostMs) this.#options.onLost(link)
      else {
        if (silentMs > Timings.pongWithinMs) this.#options.onAway(link)
        // at every tick: a ping sent before the worker died gets no answer, and only a later one gets a 503
        this.#ping(link, this.#options.nats.outbox.publish)
      }
    }
  }

  /** Pings all workers, which then send again what was lost. */
  reconnected(): void {
    const { nats } = this.#options
    this.links.resetSilences()
    this.#unheard.clear()
    for (const link of this.links.all()) {
      this.#unheard.add(link.id)
      this.#ping(link, nats.outbox.publishNow)
    }
    // unknown workers may still claim jobs that they had pulled; `onAllHeard` leaves them time
    if (this.#unheard.size === 0) this.#options.onAllHeard()
  }

  /** Whether the worker's NATS server may be at fault: it is not the one of this ingress, and no other worker is heard through it. */
  #isServerSuspected({ id }: Link): boolean {
    const { nats, serverOf } = this.#options
    const server = serverOf(id)
    return server !== undefined && server !== nats.server() &&
      !this.links.hasHeard((worker) => serverOf(worker) === server)
  }

  #ping({ id, workload }: Link, publish: Outbox["publish"]): void {
    const { nats } = this.#options
    publish.call(
      nats.outbox,
      Subjects.pingSubject(workload, id),
      undefined,
      encodeControl({ type: "ping" }),
      Subjects.aboutWorkerSubject(workload, nats.id, id)
    )
  }

  /** Pings the NATS server, which may be the cause of the silence. If it was stalled, all silences restart when it answers. */
  #pingServer(): void {
    if (this.#askedAt !== undefined) return
    const { nats, now, onStallEnd } = this.#options
    const askedAt = now()
    const answered = () => {
      this.#askedAt = undefined
      if (now() - askedAt <= stalledMs) return
      this.links.resetSilences()
      onStallEnd()
    }
    this.#askedAt = askedAt
    nats.connection.flush().then(answered, answered)
  }
}
