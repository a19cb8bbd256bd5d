/** Receives each worker's bundles in order and exactly once: acknowledges them, and requests missing ones again. */
import type { Workload } from "../../contract/Operation.ts"
import type { Bundle } from "../protocol/Bundle.ts"

/** Bundles are acknowledged at every tick, or sooner after this many bytes: the worker keeps them until then. */
const unacknowledgedBytes = 1024 * 1024

/** How long to wait before requesting the same missing bundles again, in milliseconds. */
const askAgainMs = 200

/** A worker that has sent no bundle for this long is forgotten, in milliseconds. */
const idleMs = 10 * 60_000

interface Link {
  readonly workload: Workload
  /** The number of the next bundle. */
  next: number
  acknowledged: number
  bytes: number
  heardAt: number
  asked: { readonly from: number; readonly at: number }
  server: string | undefined
}

/** What to tell a worker about its bundles. */
export interface Receipt {
  readonly type: "ack" | "resend"
  readonly number: number
}

export class BundleReceiver {
  readonly #links = new Map<string, Link>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** `size` is in bytes. `isNext`: the caller should process the entries. The caller sends the receipt, if any, to the worker. */
  receive(
    worker: string,
    workload: Workload,
    { isNumbered, number, oldest }: Bundle,
    size: number
  ): { readonly isNext: boolean; readonly receipt: Receipt | undefined } {
    const link = this.#link(worker, workload, oldest)
    link.heardAt = this.#now()
    // the worker no longer keeps older bundles
    if (link.next < oldest) link.next = oldest
    if (number > link.next) return { isNext: false, receipt: this.#request(link) }
    // a bundle without entries only asks for an acknowledgement
    if (!isNumbered) return { isNext: false, receipt: acknowledge(link) }
    if (number < link.next) return { isNext: false, receipt: undefined }
    link.next++
    link.bytes += size
    return { isNext: true, receipt: link.bytes >= unacknowledgedBytes ? acknowledge(link) : undefined }
  }

  /** Whether all bundles up to and including this number have arrived from the worker. */
  hasReceived(worker: string, number: number): boolean {
    return (this.#links.get(worker)?.next ?? 0) > number
  }

  /** The worker has reported the NATS server to which it is connected. */
  located(worker: string, server: string): void {
    const link = this.#links.get(worker)
    if (link !== undefined) link.server = server
  }

  /** The worker's NATS server, if known. */
  serverOf(worker: string): string | undefined {
    return this.#links.get(worker)?.server
  }

  /** The acknowledgements that are due. Runs every `tickMs` milliseconds. */
  *due(): Generator<readonly [worker: string, workload: Workload, receipt: Receipt]> {
    const before = this.#now() - idleMs
    for (const [worker, link] of this.#links) {
      if (link.acknowledged < link.next) yield [worker, link.workload, acknowledge(link)]
      else if (link.heardAt < before) this.#links.delete(worker)
    }
  }

  #link(worker: string, workload: Workload, oldest: number): Link {
    let link = this.#links.get(worker)
    if (link === undefined) {
      link = {
        workload,
        next: oldest,
        acknowledged: oldest,
        bytes: 0,
        heardAt: 0,
        asked: { from: -1, at: 0 },
        server: undefined
      }
      this.#links.set(worker, link)
    }
    return link
  }

  /** Requests the missing bundles; `undefined` if they were requested within `askAgainMs`. */
  #request(link: Link): Receipt | undefined {
    const now = this.#now()
    if (link.asked.from === link.next && now - link.asked.at < askAgainMs) return undefined
    link.asked = { from: link.next, at: now }
    return { type: "resend", number: link.next }
  }
}

const acknowledge = (link: Link): Receipt => {
  link.acknowledged = link.next
  link.bytes = 0
  return { type: "ack", number: link.next }
}
