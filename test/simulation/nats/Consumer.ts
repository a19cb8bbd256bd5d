/**
 * A durable pull consumer of JetStream: delivers each message to one pull request, again if it is not acknowledged in time, and
 * at most `max_deliver` times.
 */
import { epochMs } from "../world/Interposition.ts"
import type { Event, World } from "../world/World.ts"
import { matches, type Message, status } from "./Protocol.ts"
import type { Stored, Stream } from "./Stream.ts"

export interface ConsumerConfig {
  readonly name?: string
  readonly durable_name?: string
  readonly filter_subject?: string
  /** In nanoseconds. */
  readonly ack_wait?: number
  readonly max_deliver?: number
}

/** A pull request; times are in nanoseconds. */
interface Pull {
  readonly batch?: number
  readonly expires?: number
  readonly idle_heartbeat?: number
}

interface Waiting {
  readonly inbox: string
  left: number
  readonly ends: Event
  heartbeat: Event | undefined
}

interface Pending {
  deliveries: number
  /** When it is delivered again, in milliseconds of the world. */
  dueAt: number
  isDue: boolean
}

const nanosPerMs = 1_000_000

export class Consumer {
  readonly #world: World
  readonly #stream: Stream
  readonly config: ConsumerConfig
  readonly #filter: ReadonlyArray<string>
  readonly #pending = new Map<number, Pending>()
  #waiting: Array<Waiting> = []
  /** The newest message that was delivered. */
  #cursor = 0
  #delivered = 0
  #timer: Event | undefined

  constructor(world: World, stream: Stream, config: ConsumerConfig) {
    this.#world = world
    this.#stream = stream
    this.config = config
    this.#filter = (config.filter_subject ?? ">").split(".")
  }

  /** Messages that were delivered and not acknowledged. */
  get unacknowledged(): number {
    return this.#pending.size
  }

  get cursor(): number {
    return this.#cursor
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Messages that were never delivered. */
  get undelivered(): number {
    let count = 0
    for (const stored of this.#stream.messages.values()) if (this.#isNew(stored)) count++
    return count
  }

  pull(inbox: string, { batch = 1, expires = 0, idle_heartbeat = 0 }: Pull): void {
    const request: Waiting = {
      inbox,
      left: batch,
      heartbeat: undefined,
      ends: this.#after(expires / nanosPerMs, () => this.#expire(request))
    }
    this.#waiting.push(request)
    if (idle_heartbeat > 0) this.#beat(request, idle_heartbeat / nanosPerMs)
    this.pump()
  }

  /** Settles a delivery: `+ACK`, `-NAK`, `-NAK {"delay":…}` or `+WPI`. */
  settle(sequence: number, deliveries: number, word: string): void {
    const pending = this.#pending.get(sequence)
    if (word.startsWith("+ACK") || word === "") {
      this.#pending.delete(sequence)
      // an acknowledgement of an earlier delivery counts as well
      this.#stream.acknowledged(sequence)
      return
    }
    if (pending === undefined || pending.deliveries !== deliveries) return
    if (word.startsWith("+WPI")) pending.dueAt = this.#world.now + this.#ackWaitMs
    else if (word.startsWith("-NAK")) {
      const delay: unknown = word.length > 5 ? JSON.parse(word.slice(5)).delay : 0
      pending.dueAt = this.#world.now + Number(delay) / nanosPerMs
    }
    this.#plan()
  }

  /** Pull requests are only in the leader's memory. */
  changedLeader(): void {
    for (const { ends, heartbeat } of this.#waiting) {
      ends.isCancelled = true
      if (heartbeat !== undefined) heartbeat.isCancelled = true
    }
    this.#waiting = []
    if (this.#timer !== undefined) this.#timer.isCancelled = true
    this.#timer = undefined
    this.#plan()
  }

  /** Delivers as much as requests ask for. */
  pump(): void {
    const { leader } = this.#stream
    if (leader === undefined || !leader.machine.isAlive) return
    for (let request = this.#waiting[0]; request !== undefined; request = this.#waiting[0]) {
      const stored = this.#next()
      if (stored === undefined) return
      // a request whose inbox is known to be gone is dropped
      if (!leader.knowsListener(request.inbox)) {
        this.#end(request)
        continue
      }
      request.left--
      if (request.left === 0) this.#end(request)
      const pending = this.#pending.get(stored.sequence) ?? { deliveries: 0, dueAt: 0, isDue: false }
      pending.deliveries++
      pending.dueAt = this.#world.now + this.#ackWaitMs
      pending.isDue = false
      this.#pending.set(stored.sequence, pending)
      this.#cursor = Math.max(this.#cursor, stored.sequence)
      leader.send(request.inbox, this.#toMessage(stored, pending.deliveries))
    }
    this.#plan()
  }

  get #ackWaitMs(): number {
    return (this.config.ack_wait ?? 30_000 * nanosPerMs) / nanosPerMs
  }

  #isNew({ message, sequence }: Stored): boolean {
    return sequence > this.#cursor && matches(this.#filter, message.subject.split("."))
  }

  #next(): Stored | undefined {
    for (const [sequence, pending] of this.#pending) {
      if (!pending.isDue) continue
      const stored = this.#stream.messages.get(sequence)
      if (stored === undefined) this.#pending.delete(sequence)
      else return stored
    }
    for (const stored of this.#stream.messages.values()) if (this.#isNew(stored)) return stored
    return undefined
  }

  #toMessage({ at, message, sequence }: Stored, deliveries: number): Message {
    const { config } = this.#stream
    const nanos = BigInt(epochMs) * 1_000_000n + BigInt(Math.round(at * nanosPerMs))
    const reply = `$JS.ACK.${config.name}.${this.config.durable_name}.${deliveries}.${sequence}.${++this.#delivered}`
    return { ...message, reply: `${reply}.${nanos}.${this.undelivered}` }
  }

  /** Wakes up when the next delivery is due again. */
  #plan(): void {
    let next = Number.POSITIVE_INFINITY
    for (const { dueAt, isDue } of this.#pending.values()) if (!isDue) next = Math.min(next, dueAt)
    if (this.#timer !== undefined) this.#timer.isCancelled = true
    this.#timer = next === Number.POSITIVE_INFINITY
      ? undefined
      : this.#after(next - this.#world.now, () => this.#redeliver())
  }

  #redeliver(): void {
    this.#timer = undefined
    const most = this.config.max_deliver ?? -1
    for (const [sequence, pending] of this.#pending) {
      if (pending.isDue || pending.dueAt > this.#world.now) continue
      // it stays in the stream as an orphan
      if (most > 0 && pending.deliveries >= most) this.#pending.delete(sequence)
      else pending.isDue = true
    }
    this.pump()
    this.#plan()
  }

  #beat(request: Waiting, everyMs: number): void {
    request.heartbeat = this.#after(everyMs, () => {
      this.#stream.leader?.send(request.inbox, status(request.inbox, 100, "Idle Heartbeat"))
      this.#beat(request, everyMs)
    })
  }

  #expire(request: Waiting): void {
    const left = { "Nats-Pending-Messages": `${request.left}`, "Nats-Pending-Bytes": "0" }
    this.#stream.leader?.send(request.inbox, status(request.inbox, 408, "Request Timeout", left))
    this.#end(request)
  }

  #end(request: Waiting): void {
    request.ends.isCancelled = true
    if (request.heartbeat !== undefined) request.heartbeat.isCancelled = true
    this.#waiting = this.#waiting.filter((other) => other !== request)
  }

  /** Runs at the leader of that time. */
  #after(ms: number, run: () => void): Event {
    return this.#world.after(ms, this.#stream.leader?.machine, run)
  }
}
