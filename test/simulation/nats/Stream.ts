/** A stream of JetStream: a log with limits and a window of message ids, on the server that leads it. */
import type { World } from "../world/World.ts"
import type { Server } from "./Server.ts"
import { Consumer, type ConsumerConfig } from "./Consumer.ts"
import { headerOf, matches, type Message } from "./Protocol.ts"

/** JetStream's own names; times are in nanoseconds. */
export interface StreamConfig {
  readonly name: string
  readonly subjects: ReadonlyArray<string>
  readonly retention?: "limits" | "interest" | "workqueue"
  readonly storage?: "file" | "memory"
  readonly max_msgs?: number
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

/** The answer to a publication. */
export type PubAck =
  | { readonly stream: string; readonly seq: number; readonly duplicate?: true }
  | {
    readonly stream: string
    readonly seq: 0
    readonly error: { readonly code: number; readonly description: string }
  }

const nanosPerMs = 1_000_000

export class Stream {
  readonly #world: World
  readonly config: StreamConfig
  readonly createdAt: number
  readonly consumers = new Map<string, Consumer>()
  /** The server that stores and delivers; `undefined` during an election. */
  leader: Server | undefined
  #messages = new Map<number, Stored>()
  #ids = new Map<string, { readonly sequence: number; readonly at: number }>()
  #last = 0
  readonly #subjects: ReadonlyArray<ReadonlyArray<string>>

  constructor(world: World, config: StreamConfig, leader: Server) {
    this.#world = world
    this.config = config
    this.createdAt = world.now
    this.leader = leader
    this.#subjects = config.subjects.map((subject) => subject.split("."))
  }

  get last(): number {
    return this.#last
  }

  get messages(): ReadonlyMap<number, Stored> {
    return this.#messages
  }

  takes(subject: ReadonlyArray<string>): boolean {
    return this.#subjects.some((pattern) => matches(pattern, subject))
  }

  publish(message: Message): PubAck {
    const { duplicate_window = 120_000 * nanosPerMs, max_age = 0, max_msgs = -1, name } = this.config
    const { now } = this.#world
    this.#forget(duplicate_window / nanosPerMs)
    if (max_age > 0) {
      for (const { at, sequence } of this.#messages.values()) {
        if (now - at <= max_age / nanosPerMs) break
        this.#messages.delete(sequence)
      }
    }
    const id = headerOf(message, "Nats-Msg-Id")
    const known = id === undefined ? undefined : this.#ids.get(id)
    if (known !== undefined) return { stream: name, seq: known.sequence, duplicate: true }
    if (max_msgs > 0 && this.#messages.size >= max_msgs && this.config.retention === "workqueue") {
      return { stream: name, seq: 0, error: { code: 503, description: "maximum messages exceeded" } }
    }
    const sequence = ++this.#last
    this.#messages.set(sequence, { sequence, message, at: now })
    if (id !== undefined) this.#ids.set(id, { sequence, at: now })
    for (const consumer of this.consumers.values()) consumer.pump()
    return { stream: name, seq: sequence }
  }

  /** A consumer has acknowledged it. */
  acknowledged(sequence: number): void {
    if (this.config.retention === "workqueue") this.#messages.delete(sequence)
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

  /** The leader is gone: what waits at it is lost. */
  lead(server: Server | undefined): void {
    this.leader = server
    for (const consumer of this.consumers.values()) consumer.changedLeader()
  }

  /** Loses the newest messages although they were confirmed, as after a crash before a sync. */
  forgetNewest(count: number): void {
    for (const sequence of [...this.#messages.keys()].toReversed().slice(0, count)) {
      this.#messages.delete(sequence)
      this.#last = Math.min(this.#last, sequence - 1)
      for (const [id, known] of this.#ids) if (known.sequence === sequence) this.#ids.delete(id)
    }
  }

  #forget(windowMs: number): void {
    for (const [id, { at }] of this.#ids) {
      if (this.#world.now - at <= windowMs) return
      this.#ids.delete(id)
    }
  }
}
