/**
 * A durable pull consumer of JetStream: delivers each message to one pull request, again if it is not acknowledged in time, and
 * at most `max_deliver` times. It has its own leader, whose memory holds the pull requests.
 */
import { epochMs } from "../world/Interposition.ts"
import type { Event, World } from "../world/World.ts"
import { type Change, Group } from "./Group.ts"
import { matches, type Message, status } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import type { Stored, Stream } from "./Stream.ts"

export interface ConsumerConfig {
  readonly name?: string
  readonly durable_name?: string
  readonly filter_subject?: string
  /** In nanoseconds. */
  readonly ack_wait?: number
  readonly max_deliver?: number
  readonly max_waiting?: number
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
  readonly until: number
  readonly ends: Event | undefined
  heartbeat: Event | undefined
}

interface Pending {
  deliveries: number
  /** When it is delivered again, in milliseconds of the world. */
  dueAt: number
  isDue: boolean
}

const nanosPerMs = 1_000_000

/** When a message was stored, in nanoseconds since 1970. */
const nanosOf = ({ at }: Stored): string => `${BigInt(epochMs) * 1_000_000n + BigInt(Math.round(at * nanosPerMs))}`

/** How many acknowledged messages may be delivered again after a roll-back. */
const mostRolledBack = 20

export class Consumer {
  readonly #world: World
  readonly #stream: Stream
  readonly config: ConsumerConfig
  readonly group: Group
  readonly #filter: ReadonlyArray<string>
  readonly #pending = new Map<number, Pending>()
  #waiting: Array<Waiting> = []
  /** Inboxes whose pull requests were dropped without a status message. */
  #untold: Array<string> = []
  /** The newest message that was delivered. */
  #cursor = 0
  #delivered = 0
  /** How many messages were delivered too often, and stay in the stream as orphans. */
  orphans = 0
  #timer: Event | undefined
  /** The last messages that were acknowledged, with their deliveries. */
  #acknowledged: Array<{ readonly stored: Stored; readonly deliveries: number }> = []

  constructor(world: World, stream: Stream, config: ConsumerConfig) {
    this.#world = world
    this.#stream = stream
    this.config = config
    this.#filter = (config.filter_subject ?? ">").split(".")
    const { peers } = stream.group
    this.group = new Group(peers, world.random.pick(peers), (change) => this.#changedLeader(change))
  }

  /** Messages that were delivered and not acknowledged. */
  get unacknowledged(): number {
    return this.#pending.size
  }

  get cursor(): number {
    return this.#cursor
  }

  /** How many messages were delivered, each delivery counted. */
  get delivered(): number {
    return this.#delivered
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** How many messages the waiting requests ask for. */
  get asked(): number {
    return this.#waiting.reduce((sum, { left }) => sum + left, 0)
  }

  /** Messages that were never delivered. */
  get undelivered(): number {
    let count = 0
    for (const stored of this.#stream.messages.values()) if (this.#isNew(stored)) count++
    return count
  }

  pull(inbox: string, { batch = 1, expires = 0, idle_heartbeat = 0 }: Pull): void {
    const most = this.config.max_waiting ?? 512
    if (this.#waiting.length >= most) return this.#tell(inbox, 409, "Exceeded MaxWaiting")
    const request: Waiting = {
      inbox,
      left: batch,
      until: expires === 0 ? Number.POSITIVE_INFINITY : this.#world.now + expires / nanosPerMs,
      heartbeat: undefined,
      // without a limit it waits for ever
      ends: expires === 0 ? undefined : this.#after(expires / nanosPerMs, () => this.#expire(request))
    }
    this.#waiting.push(request)
    if (idle_heartbeat > 0) this.#beat(request, idle_heartbeat / nanosPerMs)
    this.pump()
  }

  /** Settles a delivery: `+ACK`, `-NAK`, `-NAK {"delay":…}` or `+WPI`. */
  settle(sequence: number, nanos: string, word: string): void {
    const pending = this.#pending.get(sequence)
    if (word.startsWith("+ACK") || word === "") {
      const stored = this.#stream.messages.get(sequence)
      // the client meant a message with this sequence from before the stream was lost
      if (stored !== undefined && nanosOf(stored) !== nanos) this.#stream.mistake(stored)
      if (stored !== undefined && pending !== undefined) {
        this.#acknowledged.push({ stored, deliveries: pending.deliveries })
        if (this.#acknowledged.length > mostRolledBack) this.#acknowledged.shift()
      }
      // an acknowledgement of an earlier delivery counts as well
      this.#pending.delete(sequence)
      this.#stream.acknowledged(sequence)
      return
    }
    // other answers only count for a pending delivery
    if (pending === undefined) return
    if (word.startsWith("+WPI")) pending.dueAt = this.#world.now + this.#ackWaitMs
    else if (word.startsWith("-NAK")) {
      const delay: unknown = word.length > 5 ? JSON.parse(word.slice(5)).delay : 0
      pending.dueAt = this.#world.now + Number(delay) / nanosPerMs
      pending.isDue = false
    }
    this.#plan()
  }

  /** The stream has stored a message: its leader tells the consumer's. */
  stored(by: Server | undefined): void {
    const { leader } = this
    if (leader === undefined || by === undefined) return
    if (leader === by) this.pump()
    else leader.cluster.inOrder(by, leader, () => this.leader === leader ? this.pump() : undefined)
  }

  /** Ends a deleted consumer. */
  end(): void {
    this.forgetPulls(true, "Consumer Deleted")
    this.#pending.clear()
    this.#plan()
  }

  get leader(): Server | undefined {
    return this.group.leader
  }

  /** Drops all pull requests. Tells their clients if `tells`. */
  forgetPulls(tells: boolean, text = "Leadership Change"): void {
    for (const { ends, heartbeat, inbox } of this.#waiting) {
      if (tells) this.#tell(inbox, 409, text)
      if (ends !== undefined) ends.isCancelled = true
      if (heartbeat !== undefined) heartbeat.isCancelled = true
    }
    this.#waiting = []
  }

  /**
   * Loses the newest part of the state: acknowledged messages are delivered again, if the stream still has them, and messages that
   * workers have are delivered to others.
   */
  rollBack(): void {
    const { random } = this.#world
    for (const { deliveries, stored } of this.#acknowledged.splice(-random.integer(1, mostRolledBack))) {
      this.#stream.restore(stored)
      this.#pending.set(stored.sequence, { deliveries, dueAt: this.#world.now + this.#ackWaitMs, isDue: false })
    }
    if (random.chance(0.5)) {
      const [newest] = [...this.#pending.keys()].toSorted((a, b) => b - a)
      if (newest !== undefined) {
        this.#pending.delete(newest)
        this.#cursor = Math.min(this.#cursor, newest - 1)
      }
    }
    this.#plan()
    this.pump()
  }

  /** Delivers as much as requests ask for. */
  pump(): void {
    const { leader } = this
    if (leader === undefined || !leader.isUp || !this.group.hasMajority) return
    this.#stream.expire()
    for (let request = this.#waiting[0]; request !== undefined; request = this.#waiting[0]) {
      const stored = this.#next()
      if (stored === undefined) break
      // a request whose inbox is known to be gone is dropped, and one that has expired while the server was frozen
      const isLate = request.until <= this.#world.now
      if (isLate || !leader.knowsListener(request.inbox)) {
        if (isLate && this.#world.random.chance(0.5)) this.#expire(request)
        else this.#end(request)
        if (this.#waiting.length === 0 && this.#world.random.chance(0.5)) this.#misplace(stored)
        continue
      }
      request.left--
      if (request.left === 0) this.#end(request)
      else this.#waiting = [...this.#waiting.slice(1), request]
      const pending = this.#pending.get(stored.sequence) ?? { deliveries: 0, dueAt: 0, isDue: false }
      pending.deliveries = pending.isDue ? pending.deliveries + 1 : 1
      pending.dueAt = this.#world.now + this.#ackWaitMs
      pending.isDue = false
      this.#pending.set(stored.sequence, pending)
      this.#cursor = Math.max(this.#cursor, stored.sequence)
      this.#stream.delivered(stored, pending.deliveries)
      leader.send(request.inbox, this.#toMessage(stored, pending.deliveries))
    }
    this.#plan()
  }

  /**
   * An old server without a pull request for a message that is due again waits for another ack wait, and counts the newest message that
   * it has delivered as new.
   */
  #misplace({ sequence }: Stored): void {
    const pending = this.#pending.get(sequence)
    if (pending?.isDue !== true) return
    pending.deliveries++
    pending.dueAt = this.#world.now + this.#ackWaitMs
    pending.isDue = false
    this.#cursor = Math.max(0, this.#cursor - 1)
  }

  /** Handles a new leader. Pull requests and timers were only in the memory of the former one. */
  #changedLeader({ from, hasSteppedDown, isStale }: Change): void {
    const { random } = this.#world
    if (isStale && from !== undefined) this.#haunt(from)
    else for (const { inbox } of this.#waiting) this.#untold.push(inbox)
    this.forgetPulls(false)
    // a leader that steps down may tell the clients, and so may the next one, which knows the inboxes but not the requests
    const teller = hasSteppedDown && from?.isUp === true ? from : this.leader
    if (teller !== undefined && random.chance(0.5)) {
      for (const inbox of this.#untold) teller.send(inbox, status(inbox, 409, "Leadership Change"))
      this.#untold = []
    }
    if (this.leader !== undefined) this.#untold = []
    if (this.#timer !== undefined) this.#timer.isCancelled = true
    this.#timer = undefined
    // the new leader may start the ack wait again
    for (const pending of this.#pending.values()) {
      if (random.chance(0.5)) pending.dueAt = Math.max(pending.dueAt, this.#world.now + this.#ackWaitMs)
    }
    this.#plan()
  }

  /** Lets a former leader that wakes up deliver messages that it considers due to the requests that it remembers. */
  #haunt(former: Server): void {
    const waiting = this.#waiting.map(({ inbox, left }) => ({ inbox, left }))
    const known = [...this.#pending].map(([sequence, { deliveries, dueAt }]) => ({
      stored: this.#stream.messages.get(sequence),
      deliveries,
      dueAt
    }))
    // held while it is frozen
    this.#world.after(0, former.machine, () => {
      for (const { deliveries, dueAt, stored } of known) {
        const [request] = waiting
        if (request === undefined) break
        if (stored === undefined || dueAt > this.#world.now || this.#world.random.chance(0.5)) continue
        if (--request.left <= 0) waiting.shift()
        former.send(request.inbox, this.#toMessage(stored, deliveries + 1))
      }
      if (this.#world.random.chance(0.5)) return
      for (const { inbox } of waiting) former.send(inbox, status(inbox, 409, "Leadership Change"))
    })
  }

  get #ackWaitMs(): number {
    return (this.config.ack_wait ?? 30_000 * nanosPerMs) / nanosPerMs
  }

  #matches({ message }: Stored): boolean {
    return matches(this.#filter, message.subject.split("."))
  }

  #isNew(stored: Stored): boolean {
    return stored.sequence > this.#cursor && this.#matches(stored)
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

  #toMessage(stored: Stored, deliveries: number): Message {
    const { message, sequence } = stored
    const { config } = this.#stream
    const reply = `$JS.ACK.${config.name}.${this.config.durable_name}.${deliveries}.${sequence}.${++this.#delivered}`
    return { ...message, reply: `${reply}.${nanosOf(stored)}.${this.undelivered}` }
  }

  /** Sets the timer for the next redelivery. */
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
      if (most > 0 && pending.deliveries >= most) {
        this.#pending.delete(sequence)
        this.orphans++
      } else pending.isDue = true
    }
    this.pump()
    this.#plan()
  }

  #beat(request: Waiting, everyMs: number): void {
    request.heartbeat = this.#after(everyMs, () => {
      this.#tell(request.inbox, 100, "Idle Heartbeat")
      this.#beat(request, everyMs)
    })
  }

  #expire(request: Waiting): void {
    this.#tell(request.inbox, 408, "Request Timeout", request.left)
    this.#end(request)
  }

  #tell(inbox: string, code: number, text: string, left?: number): void {
    const fields = left === undefined
      ? {}
      : { "Nats-Pending-Messages": `${left}`, "Nats-Pending-Bytes": "0" }
    this.leader?.send(inbox, status(inbox, code, text, fields))
  }

  #end(request: Waiting): void {
    if (request.ends !== undefined) request.ends.isCancelled = true
    if (request.heartbeat !== undefined) request.heartbeat.isCancelled = true
    this.#waiting = this.#waiting.filter((other) => other !== request)
  }

  /** Runs `run` on the machine of the current leader. */
  #after(ms: number, run: () => void): Event {
    return this.#world.after(ms, this.leader?.machine, run)
  }
}
