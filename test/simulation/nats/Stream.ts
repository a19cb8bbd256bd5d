/** A stream of JetStream: a log with limits and a window of message ids, replicated by a group of servers with a leader. */
import type { World } from "../world/World.ts"
import { Consumer, type ConsumerConfig } from "./Consumer.ts"
import { Group } from "./Group.ts"
import { headerOf, matches, type Message } from "./Protocol.ts"
import type { Server } from "./Server.ts"

/** JetStream's own names; times are in nanoseconds. */
export interface StreamConfig {
  readonly name: string
  readonly subjects: ReadonlyArray<string>
  readonly retention?: "limits" | "interest" | "workqueue"
  readonly storage?: "file" | "memory"
  readonly discard?: "old" | "new"
  readonly num_replicas?: number
  readonly max_msgs?: number
  readonly max_msgs_per_subject?: number
  readonly max_bytes?: number
  readonly max_age?: number
  readonly duplicate_window?: number
}

export interface Stored {
  readonly sequence: number
  readonly message: Message
  /** In milliseconds of the world. */
  readonly at: number
}

/** The history of a message; times in milliseconds of the world. */
interface Passage {
  readonly storedAt: number
  /** Whether a consumer does not deliver it, because it has already delivered a lost message with its sequence. */
  readonly isBehind: boolean
  /** When it was first delivered. */
  deliveredAt: number | undefined
}

/** The answer to a publication. */
export type PubAck =
  | { readonly stream: string; readonly seq: number; readonly duplicate?: true }
  | {
    readonly stream: string
    readonly seq: 0
    readonly error: { readonly code: number; readonly err_code: number; readonly description: string }
  }

/** A message that a leader has received but not yet stored. */
interface Proposal {
  /** The leader at the time. */
  readonly at: Server
  /** Whether other servers may have it. */
  readonly isShared: boolean
  /** Stores it. `by` is the server that confirms, if any. */
  readonly store: (by: Server | undefined) => void
}

const nanosPerMs = 1_000_000

/** Bytes that a message takes on disk besides its subject, headers and payload. */
const recordBytes = 30

const bodyOf = ({ headers, payload }: Message): number => headers.length + payload.length
const sizeOf = (message: Message): number => recordBytes + message.subject.length + bodyOf(message)

const refusals = {
  messages: { code: 503, err_code: 10_077, description: "maximum messages exceeded" },
  bytes: { code: 503, err_code: 10_077, description: "maximum bytes exceeded" },
  disk: { code: 503, err_code: 10_023, description: "insufficient resources" }
} as const

export class Stream {
  readonly #world: World
  readonly config: StreamConfig
  readonly createdAt: number
  readonly consumers = new Map<string, Consumer>()
  readonly group: Group
  /** Whether the disk is full. */
  isFull = false
  /** Whether answers to publications get lost, as on a connection that breaks. */
  losesAcks = false
  /** Messages that wait for the leader's stalled disk; `undefined` if it works. */
  #stalled: Array<Proposal> | undefined
  #messages = new Map<number, Stored>()
  #bytes = 0
  #ids = new Map<string, { readonly sequence: number; readonly at: number }>()
  #last = 0
  /** The history of each message that has an id. */
  readonly history = new Map<string, Passage>()
  readonly #subjects: ReadonlyArray<ReadonlyArray<string>>
  /** Whether `recordBytes` count when the server checks for room. Old servers ignore them, and then remove the oldest messages. */
  readonly #countsRecords: boolean
  /** Messages that were confirmed and are gone without having been acknowledged, by their ids. */
  readonly forgotten = new Map<string, Message>()
  /** Ids of messages that were acknowledged by mistake, for earlier ones: sequences start again if the stream is lost. */
  readonly mistaken = new Set<string>()
  /** Ids of messages that a consumer has delivered again as if for the first time. */
  readonly recounted = new Set<string>()
  /** When servers last lost their memory, and which of them have lacked the log since then. */
  readonly #restarted = new Map<Server, number>()
  readonly #empty = new Set<Server>()
  /** Messages that wait for a majority, oldest first. */
  #uncommitted: Array<Proposal> = []

  constructor(world: World, config: StreamConfig, leader: Server) {
    const { cluster } = leader
    this.#world = world
    this.config = config
    this.createdAt = world.now
    const replicas = config.num_replicas ?? 1
    const others = cluster.others(leader).filter((_, at) => at < replicas - 1)
    this.group = new Group([leader, ...others], leader, () => this.#changedLeader())
    this.#countsRecords = world.random.chance(0.5)
    this.#subjects = config.subjects.map((subject) => subject.split("."))
  }

  /** The server that stores messages; `undefined` during an election. */
  get leader(): Server | undefined {
    return this.group.leader
  }

  get last(): number {
    return this.#last
  }

  get messages(): ReadonlyMap<number, Stored> {
    return this.#messages
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether a further message with this id is a duplicate. */
  knows(id: string): boolean {
    return this.#ids.has(id)
  }

  takes(subject: ReadonlyArray<string>): boolean {
    return this.#subjects.some((pattern) => matches(pattern, subject))
  }

  /**
   * Stores a message that has arrived at a server, once its disk answers and a majority has the message too. A server that does
   * not lead stores nothing.
   */
  propose(at: Server, store: Proposal["store"]): void {
    if (this.leader !== at) return
    const proposal = { at, store, isShared: at.isReachable }
    if (this.#stalled !== undefined) return void this.#stalled.push(proposal)
    if (this.group.peers.length === 1) return store(at)
    this.#uncommitted.push(proposal)
    at.cluster.inOrder(at, at, () => this.#commit(proposal))
  }

  publish(message: Message): PubAck {
    const { discard, duplicate_window = 120_000 * nanosPerMs, max_bytes = -1, max_msgs = -1, name } = this.config
    const { now } = this.#world
    this.#forgetIds(duplicate_window / nanosPerMs)
    this.expire()
    const id = headerOf(message, "Nats-Msg-Id")
    const known = id === undefined ? undefined : this.#ids.get(id)
    if (known !== undefined) return { stream: name, seq: known.sequence, duplicate: true }
    const hasRoom = () => max_msgs < 0 || this.#messages.size < max_msgs
    const size = this.#countsRecords ? sizeOf(message) : bodyOf(message)
    const hasBytes = () => max_bytes < 0 || this.#bytes + size <= max_bytes
    if (this.isFull) return { stream: name, seq: 0, error: refusals.disk }
    if (discard === "new") {
      if (!hasRoom()) return { stream: name, seq: 0, error: refusals.messages }
      if (!hasBytes()) return { stream: name, seq: 0, error: refusals.bytes }
    }
    const sequence = ++this.#last
    this.#messages.set(sequence, { sequence, message, at: now })
    this.#bytes += sizeOf(message)
    for (const oldest of this.#messages.keys()) {
      if (max_msgs < 0 || this.#messages.size <= max_msgs) {
        if (max_bytes < 0 || this.#bytes <= max_bytes) break
      }
      this.remove(oldest)
    }
    if (id !== undefined) {
      this.#ids.set(id, { sequence, at: now })
      const isBehind = [...this.consumers.values()].some(({ cursor }) => cursor >= sequence)
      this.history.set(id, { storedAt: now, isBehind, deliveredAt: undefined })
    }
    for (const consumer of this.consumers.values()) consumer.stored(this.leader)
    return { stream: name, seq: sequence }
  }

  /** Records a delivery by a consumer. `deliveries` is the consumer's count, which may be wrong. */
  delivered({ message }: Stored, deliveries: number): void {
    const id = headerOf(message, "Nats-Msg-Id") ?? ""
    const known = this.history.get(id)
    if (known === undefined) return
    if (deliveries === 1 && known.deliveredAt !== undefined) this.recounted.add(id)
    known.deliveredAt ??= this.#world.now
  }

  /** Handles an acknowledgement by a consumer. */
  acknowledged(sequence: number): void {
    if (this.config.retention === "workqueue") this.remove(sequence)
  }

  /** Records that a client has acknowledged an earlier message with the same sequence. */
  mistake({ message }: Stored): void {
    const id = headerOf(message, "Nats-Msg-Id")
    if (id !== undefined) this.mistaken.add(id)
  }

  remove(sequence: number): void {
    const stored = this.#messages.get(sequence)
    if (stored === undefined) return
    this.#messages.delete(sequence)
    this.#bytes -= sizeOf(stored.message)
  }

  /** Removes messages that are too old. */
  expire(): void {
    const { max_age = 0 } = this.config
    if (max_age === 0) return
    for (const { at, sequence } of this.#messages.values()) {
      if (this.#world.now - at <= max_age / nanosPerMs) return
      this.remove(sequence)
    }
  }

  deleteConsumer(name: string): void {
    this.consumers.get(name)?.end()
    this.consumers.delete(name)
  }

  ensureConsumer(config: ConsumerConfig): Consumer {
    const name = config.durable_name ?? config.name ?? ""
    let consumer = this.consumers.get(name)
    if (consumer === undefined) {
      consumer = new Consumer(this.#world, this, { ...config, durable_name: name })
      this.consumers.set(name, consumer)
    }
    return consumer
  }

  /** Reacts to servers that came or left. */
  review(): void {
    this.group.review()
    for (const consumer of this.consumers.values()) consumer.group.review()
    if (!this.group.hasMajority) return
    this.#commit(this.#uncommitted.at(-1))
    for (const consumer of this.consumers.values()) consumer.pump()
  }

  /** Reacts to a server that has lost its memory. */
  restarted(server: Server): void {
    this.#restarted.set(server, this.#world.now)
    const { cluster } = server
    if (this.config.storage !== "memory" || cluster.keepsMemory) return
    this.#empty.add(server)
    const catchUp = () => {
      if (this.group.isWhole && !this.#empty.has(this.leader!)) this.#empty.delete(server)
      else this.#world.after(100, server.machine, catchUp)
    }
    this.#world.after(this.#world.random.between(10, 2_000), server.machine, catchUp)
  }

  /** Stalls the leader's disk until `resume`. */
  stall(): void {
    this.#stalled ??= []
  }

  resume(): void {
    const stalled = this.#stalled ?? []
    this.#stalled = undefined
    for (const { at, store } of stalled) this.propose(at, store)
  }

  /** Loses the newest messages although they were confirmed, as after a power cut before a sync. */
  forgetNewest(count: number): void {
    for (const sequence of [...this.#messages.keys()].toReversed().slice(0, count)) {
      this.#forget(sequence)
      this.#last = Math.min(this.#last, sequence - 1)
    }
  }

  /** Loses the whole log: sequences start again. */
  forgetAll(): void {
    for (const sequence of this.#messages.keys()) this.#forget(sequence)
    this.#ids.clear()
    this.#last = 0
  }

  /** Restores a message that a consumer had acknowledged. */
  restore(stored: Stored): void {
    if (stored.sequence > this.#last || this.#messages.has(stored.sequence)) return
    this.#messages.set(stored.sequence, stored)
    this.#bytes += sizeOf(stored.message)
    this.#messages = new Map([...this.#messages].toSorted(([a], [b]) => a - b))
  }

  /** Stores a message and those before it, if their leader still leads a majority. */
  #commit(proposal: Proposal | undefined): void {
    const count = proposal === undefined ? 0 : this.#uncommitted.indexOf(proposal) + 1
    const { leader } = this
    if (leader?.isReachable !== true || !this.group.hasMajority) return
    for (const { store } of this.#uncommitted.splice(0, count)) store(leader)
  }

  #changedLeader(): void {
    const { leader } = this
    if (leader === undefined) return
    if (this.#empty.delete(leader)) this.forgetAll()
    const restartedAt = this.#restarted.get(leader)
    if (restartedAt !== undefined) this.#forgetSettledIds(restartedAt)
    // what the former leader had not stored is lost, or the new leader stores it, with or without a confirmation
    const { random } = this.#world
    const uncommitted = this.#uncommitted.splice(0).filter(({ at, isShared }) => isShared || at === leader)
    for (const { store } of uncommitted.slice(0, random.integer(0, uncommitted.length))) {
      store(random.chance(0.5) ? leader : undefined)
    }
  }

  #forget(sequence: number): void {
    const stored = this.#messages.get(sequence)
    if (stored === undefined) return
    const id = headerOf(stored.message, "Nats-Msg-Id")
    if (id !== undefined) {
      this.#ids.delete(id)
      this.forgotten.set(id, stored.message)
    }
    this.remove(sequence)
  }

  /** Forgets ids of removed messages: a server that starts knows only those of the messages that it still stores. */
  #forgetSettledIds(before: number): void {
    for (const [id, { at, sequence }] of this.#ids) {
      if (at <= before && !this.#messages.has(sequence)) this.#ids.delete(id)
    }
  }

  #forgetIds(windowMs: number): void {
    for (const [id, { at }] of this.#ids) {
      if (this.#world.now - at <= windowMs) return
      this.#ids.delete(id)
    }
  }
}
