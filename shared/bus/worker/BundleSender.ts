/**
 * Sends a worker's frames and claims in bundles (protocol version 3): everything for one ingress in one turn of the event loop
 * leaves as one numbered message. The worker keeps a bundle until the ingress has acknowledged it, and sends it again on request:
 * NATS delivers at most once, and loses what is in the buffers of a connection that breaks.
 */
import { InternalError } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import {
  bundleBytes,
  encodeBundle,
  encodeClaim,
  type EncodedEntry,
  encodeEntry,
  encodeServer,
  entryBytes,
  fitsBundle,
  setOldest
} from "../protocol/Bundle.ts"
import type { Claim, Frame } from "../protocol/Frame.ts"
import * as Subjects from "../protocol/Subjects.ts"
import type { FrameChannel, FrameSource } from "./FrameChannel.ts"

/** How many unacknowledged bytes a worker keeps for all ingresses together. Beyond that it drops the oldest of the largest link. */
const keptBytes = 64 * 1024 * 1024

/** Maximum number of bytes to send in answer to one request to resend. */
const resentBytes = 8 * 1024 * 1024

/** A link whose bundles are unacknowledged for this long, in milliseconds, may have lost some: the worker asks the ingress. */
const unacknowledgedMs = 500

/** A repeated request to resend from the same number is ignored for this long, in milliseconds: the bundles are on their way. */
const resentForMs = 100

/** A link without traffic for this long is forgotten, in milliseconds. */
const idleMs = 60_000

interface Kept {
  readonly number: number
  readonly bytes: Buffer
}

/** The entries and bundles for one ingress. */
interface Link {
  readonly ingress: string
  /** Not sent yet. */
  waiting: Array<EncodedEntry>
  /** Sent and not acknowledged, in order. */
  kept: Array<Kept>
  keptBytes: number
  /** The number of the next bundle. */
  next: number
  /** When the ingress was last asked, or sent something that it should acknowledge. */
  sentAt: number
  resent: { readonly from: number; readonly at: number }
}

export interface BundleSenderOptions {
  readonly outbox: Outbox
  readonly workload: Workload
  readonly worker: string
  readonly now: () => number
  /** The NATS server to which this worker is connected. */
  readonly server: () => string
  /** A job has failed because one of its frames, of so many bytes, fits into no bundle. */
  readonly onTooLarge: (job: string, bytes: number) => void
}

export class BundleSender implements FrameChannel {
  readonly #options: BundleSenderOptions
  readonly #links = new Map<string, Link>()
  #keptBytes = 0
  #first = 0
  #onAcknowledged: (() => void) | undefined

  constructor(options: BundleSenderOptions) {
    this.#options = options
  }

  claim(ingress: string, claim: Claim): void {
    this.#add(ingress, encodeClaim(claim))
    this.#options.outbox.wake("soon")
  }

  /**
   * A frame that no bundle can carry fails its job. NATS would refuse the bundle, first and whenever ingress requests it again, and
   * so stop the answers of all other jobs of that ingress.
   */
  send({ attempt, ingress, job }: FrameSource, frame: Frame, payload?: Uint8Array): void {
    const entry = encodeEntry(job, attempt, frame, payload)
    if ("sequence" in frame && !fitsBundle(entry)) {
      this.#add(ingress, encodeEntry(job, attempt, tooLarge(frame.sequence)))
      this.#options.onTooLarge(job, entryBytes(entry))
    } else this.#add(ingress, entry)
    this.#options.outbox.wake("now")
  }

  /** The ingress has received all bundles below `number`. */
  acknowledge(ingress: string, number: number): void {
    const link = this.#links.get(ingress)
    if (link !== undefined) this.#giveUp(link, link.kept.findIndex((kept) => kept.number >= number))
    if (this.#keptBytes === 0) this.#onAcknowledged?.()
  }

  /** Asks for acknowledgements, and runs `done` once no bundle is unacknowledged. */
  afterAcknowledgement(done: () => void): void {
    if (this.#keptBytes === 0) return done()
    this.#onAcknowledged = done
    for (const link of this.#links.values()) if (link.kept.length > 0) this.ask(link.ingress)
  }

  /** The number of a new link's first bundle: high enough that a forgotten link never reuses its numbers. */
  get first(): number {
    return this.#first
  }

  /** Whether all bundles are acknowledged. */
  get isAcknowledged(): boolean {
    return this.#keptBytes === 0
  }

  /** The ingress lacks the bundles from `number` on. */
  resend(ingress: string, number: number): void {
    const { now, outbox } = this.#options
    const link = this.#links.get(ingress)
    if (link === undefined) return
    if (link.resent.from === number && now() - link.resent.at < resentForMs) return
    link.resent = { from: number, at: now() }
    link.sentAt = now()
    const oldest = oldestOf(link)
    let left = resentBytes
    for (const { bytes, number: each } of link.kept) {
      if (each < number) continue
      setOldest(bytes, oldest)
      this.#publish(link, bytes, outbox.publishNow)
      left -= bytes.length
      if (left <= 0) return
    }
  }

  /** Asks an ingress, immediately, to acknowledge all bundles so far or to request missing ones. `false` if there is no link to it. */
  ask(ingress: string): boolean {
    const link = this.#links.get(ingress)
    if (link === undefined) return false
    link.sentAt = this.#options.now()
    this.#publish(link, encodeBundle(link.next, oldestOf(link), []), this.#options.outbox.publishNow)
    return true
  }

  /** Runs several times a second: asks about bundles that are unacknowledged for `unacknowledgedMs`, and forgets idle links. */
  check(): void {
    const now = this.#options.now()
    for (const link of this.#links.values()) {
      const silentMs = now - link.sentAt
      if (link.kept.length > 0 && silentMs >= unacknowledgedMs) this.ask(link.ingress)
      else if (link.kept.length === 0 && link.waiting.length === 0 && silentMs >= idleMs) this.forget(link.ingress)
    }
  }

  /** After a reconnect: asks all ingresses which bundles they lack, and returns the ingresses. */
  reconnected(): ReadonlyArray<string> {
    const ingresses = [...this.#links.keys()]
    for (const ingress of ingresses) {
      this.#add(ingress, encodeServer(this.#options.server()))
      this.ask(ingress)
    }
    return ingresses
  }

  /** The ingress is gone. */
  forget(ingress: string): void {
    const link = this.#links.get(ingress)
    if (link === undefined) return
    this.#giveUp(link, -1)
    link.waiting = []
    this.#first = Math.max(this.#first, link.next)
    this.#links.delete(ingress)
  }

  #add(ingress: string, entry: EncodedEntry): void {
    let link = this.#links.get(ingress)
    if (link === undefined) {
      const now = this.#options.now()
      const waiting = [encodeServer(this.#options.server())]
      link = { ingress, waiting, kept: [], keptBytes: 0, next: this.#first, sentAt: now, resent: { from: -1, at: 0 } }
      this.#links.set(ingress, link)
      this.#sendWithFlush(link)
    } else if (link.waiting.length === 0) this.#sendWithFlush(link)
    link.waiting.push(entry)
  }

  #sendWithFlush(link: Link): void {
    this.#options.outbox.withFlush(() => this.#sendWaiting(link))
  }

  #sendWaiting(link: Link): void {
    const entries = link.waiting
    // the link was forgotten in the meantime
    if (entries.length === 0) return
    link.waiting = []
    let from = 0
    let size = 0
    for (const [at, entry] of entries.entries()) {
      const bytes = entryBytes(entry)
      if (size > 0 && size + bytes > bundleBytes) {
        this.#sendBundle(link, entries.slice(from, at))
        from = at
        size = 0
      }
      size += bytes
    }
    this.#sendBundle(link, from === 0 ? entries : entries.slice(from))
  }

  #sendBundle(link: Link, entries: ReadonlyArray<EncodedEntry>): void {
    if (link.kept.length === 0) link.sentAt = this.#options.now()
    const number = link.next++
    const bytes = encodeBundle(number, oldestOf(link, number), entries)
    link.kept.push({ number, bytes })
    link.keptBytes += bytes.length
    this.#keptBytes += bytes.length
    this.#publish(link, bytes, this.#options.outbox.publish)
    while (this.#keptBytes > keptBytes) this.#giveUp(this.#largest(), 1)
  }

  #publish({ ingress }: Link, bytes: Buffer, publish: Outbox["publish"]): void {
    const { outbox, worker, workload } = this.#options
    publish.call(
      outbox,
      Subjects.aboutWorkerSubject(workload, ingress, worker),
      bytes,
      undefined,
      Subjects.linkSubject(workload, worker, ingress)
    )
  }

  /** Drops the first `count` kept bundles; -1 drops all. */
  #giveUp(link: Link, count: number): void {
    for (const { bytes } of link.kept.splice(0, count === -1 ? link.kept.length : count)) {
      link.keptBytes -= bytes.length
      this.#keptBytes -= bytes.length
    }
  }

  #largest(): Link {
    return [...this.#links.values()].reduce((largest, link) => link.keptBytes > largest.keptBytes ? link : largest)
  }
}

/** Stands for the frame with this number, which is too large to send. */
const tooLarge = (sequence: number): Frame => ({ type: "error", sequence, error: new InternalError() })

const oldestOf = ({ kept, next }: Link, number = next): number => kept[0]?.number ?? number
