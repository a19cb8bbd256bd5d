/**
 * A stream that keeps the last messages of each subject, as buckets and object stores are: compare-and-set by the subject's last
 * sequence, roll-ups, expiry by age, and what a follower knew some time ago.
 *
 * Its behaviour is that of `nats-server`'s `processJetStreamMsg` and of direct gets, which any replica answers from its own log.
 */
import type { World } from "../world/World.ts"
import { headerOf, matches, type Message } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import { type PubAck, type Stored, Stream, type StreamConfig } from "./Stream.ts"

const nanosPerMs = 1_000_000

/** A change of one subject: its last message since then, or `undefined` if it has none. */
interface Change {
  readonly at: number
  readonly stored: Stored | undefined
}

export class KeyValueStream extends Stream {
  readonly #world: World
  /** Changes by subject, oldest first, from which followers with a delay are answered. */
  readonly #changes = new Map<string, Array<Change>>()
  /** Functions to call after each publication. */
  readonly onPublish: Array<(stored: Stored) => void> = []

  constructor(world: World, config: StreamConfig, leader: Server) {
    super(world, config, leader)
    this.#world = world
  }

  override publish(message: Message): PubAck {
    const { subject } = message
    const before = this.lastOf(subject)
    const expected = headerOf(message, "Nats-Expected-Last-Subject-Sequence")
    const last = before?.sequence ?? 0
    if (expected !== undefined && Number(expected) !== last) {
      const error = { code: 400, err_code: 10_071, description: `wrong last sequence: ${last}` }
      return { stream: this.config.name, seq: 0, error }
    }
    const ack = super.publish(message)
    const stored = this.messages.get(ack.seq)
    if ("error" in ack || stored === undefined) return ack
    const { max_msgs_per_subject: most = -1 } = this.config
    if (most > 0 || headerOf(message, "Nats-Rollup") === "sub") {
      const own = [...this.messages.values()].filter((other) => other.message.subject === subject)
      const kept = headerOf(message, "Nats-Rollup") === "sub" ? 1 : most
      for (const { sequence } of own.slice(0, -kept)) this.remove(sequence)
    }
    this.#note(subject, stored)
    for (const notify of this.onPublish) notify(stored)
    return ack
  }

  /** The last message of a subject, `agoMs` milliseconds ago. */
  lastOf(subject: string, agoMs = 0): Stored | undefined {
    const { now } = this.#world
    const change = this.#changes.get(subject)?.findLast(({ at }) => at <= now - agoMs)
    const stored = change?.stored
    const { max_age = 0 } = this.config
    return stored === undefined || (max_age > 0 && now - stored.at > max_age / nanosPerMs) ? undefined : stored
  }

  /** The first message of matching subjects from a sequence on. */
  nextOf(subject: string, from: number): Stored | undefined {
    const pattern = subject.split(".")
    for (const stored of this.messages.values()) {
      if (stored.sequence >= from && matches(pattern, stored.message.subject.split("."))) return stored
    }
    return undefined
  }

  /** The subjects that match, with the number of their messages. */
  subjects(filter: string): Readonly<Record<string, number>> {
    const pattern = filter.split(".")
    const counts: Record<string, number> = {}
    for (const { message: { subject } } of this.messages.values()) {
      if (matches(pattern, subject.split("."))) counts[subject] = (counts[subject] ?? 0) + 1
    }
    return counts
  }

  /** Removes matching messages except the last `keep`, and returns how many it removed. */
  purge(filter: string, keep: number): number {
    const pattern = filter.split(".")
    const own = [...this.messages.values()].filter(({ message }) => matches(pattern, message.subject.split(".")))
    const gone = keep > 0 ? own.slice(0, -keep) : own
    for (const { message, sequence } of gone) {
      this.remove(sequence)
      if (this.lastOf(message.subject)?.sequence === sequence) this.#note(message.subject, undefined)
    }
    return gone.length
  }

  #note(subject: string, stored: Stored | undefined): void {
    const changes = this.#changes.get(subject)
    const change: Change = { at: this.#world.now, stored }
    if (changes === undefined) this.#changes.set(subject, [change])
    else changes.push(change)
  }
}
