/**
 * A push consumer with one replica, as clients create for ordered reading: it numbers its deliveries, needs no acknowledgements, and
 * pauses while its server is dead. A lost message leaves a gap in the numbers, by which the client notices the loss.
 */
import { epochMs } from "../world/Interposition.ts"
import type { Event, World } from "../world/World.ts"
import type { KeyValueStream } from "./KeyValueStream.ts"
import { matches, type Message, status } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import type { Stored } from "./Stream.ts"

/** JetStream's own names; times are in nanoseconds. */
export interface PushConfig {
  readonly name: string
  readonly deliver_subject: string
  readonly deliver_policy?: "all" | "last_per_subject" | "new" | "by_start_sequence"
  readonly opt_start_seq?: number
  readonly filter_subject?: string
  readonly filter_subjects?: ReadonlyArray<string>
  readonly idle_heartbeat?: number
  readonly inactive_threshold?: number
}

export interface PushOptions {
  readonly world: World
  readonly stream: KeyValueStream
  readonly server: Server
  readonly config: PushConfig
  /** How far this server's log is behind, in milliseconds. */
  readonly lagMs: () => number
  /** Called when the consumer is gone. */
  readonly onEnd: () => void
}

const nanosPerMs = 1_000_000

/** The pause before it looks for a listener again, in milliseconds. A real server would learn of one at once. */
const lookMs = { first: 1, longest: 250 }

export class PushConsumer {
  readonly #options: PushOptions
  readonly config: PushConfig
  readonly #filters: ReadonlyArray<ReadonlyArray<string>>
  /** The next sequence to deliver. */
  #next: number
  #lastSequence = 0
  #delivered = 0
  #misses = 0
  #beat: Event | undefined
  #look: Event | undefined
  #lookMs = lookMs.first
  #heardAt: number
  #isOver = false

  constructor(options: PushOptions) {
    const { config, stream, world } = options
    this.#options = options
    this.config = config
    const { filter_subject = ">", filter_subjects = [filter_subject] } = config
    this.#filters = filter_subjects.map((filter) => filter.split("."))
    this.#heardAt = world.now
    this.#next = config.deliver_policy === "new"
      ? stream.last + 1
      : config.deliver_policy === "by_start_sequence"
      ? config.opt_start_seq ?? 1
      : 1
    this.#rest()
  }

  /** Messages that it has not delivered. */
  get pending(): number {
    let count = 0
    for (const stored of this.#options.stream.messages.values()) if (this.#isWanted(stored)) count++
    return count
  }

  get server(): Server {
    return this.#options.server
  }

  /** Loses the next messages on their way. */
  miss(count: number): void {
    this.#misses += count
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#stop()
    this.#options.onEnd()
  }

  /** Resumes on a server that is back, which may not have stored the consumer, or its last delivery. */
  resume(): void {
    const { random } = this.#options.world
    if (random.chance(0.3)) return this.end()
    if (this.#delivered > 0 && random.chance(0.3)) {
      this.#delivered--
      this.#next = this.#lastSequence
    }
    this.#stop()
    this.pump()
  }

  /** Delivers what is new at its server. */
  pump(): void {
    if (this.#isOver) return
    const { lagMs, server, stream, world } = this.#options
    if (!server.knowsListener(this.config.deliver_subject)) return this.#wait()
    this.#heardAt = world.now
    this.#lookMs = lookMs.first
    for (const stored of stream.messages.values()) {
      if (!this.#isWanted(stored)) continue
      const waitMs = stored.at + lagMs() - world.now
      if (waitMs > 0.001) return void world.after(waitMs, server.machine, () => this.pump())
      this.#next = stored.sequence + 1
      this.#lastSequence = stored.sequence
      this.#delivered++
      if (this.#misses > 0) {
        this.#misses--
        world.trace.tell(server.name, `loses a message of ${stream.config.name} to a watch`)
        continue
      }
      server.send(this.config.deliver_subject, this.#toMessage(stored))
    }
    this.#rest()
  }

  #stop(): void {
    for (const event of [this.#beat, this.#look]) if (event !== undefined) event.isCancelled = true
    this.#look = undefined
  }

  #isWanted({ message, sequence }: Stored): boolean {
    const tokens = message.subject.split(".")
    return sequence >= this.#next && this.#filters.some((filter) => matches(filter, tokens))
  }

  #toMessage({ at, message, sequence }: Stored): Message {
    const nanos = BigInt(epochMs) * 1_000_000n + BigInt(Math.round(at * nanosPerMs))
    const { name } = this.#options.stream.config
    const place = `1.${sequence}.${this.#delivered}.${nanos}.${this.pending}`
    return { ...message, reply: `$JS.ACK.${name}.${this.config.name}.${place}` }
  }

  /** Sends heartbeats while there is nothing to deliver. */
  #rest(): void {
    const { server, world } = this.#options
    const everyMs = (this.config.idle_heartbeat ?? 0) / nanosPerMs
    if (this.#beat !== undefined) this.#beat.isCancelled = true
    if (everyMs === 0) return
    this.#beat = world.after(everyMs, server.machine, () => {
      if (!server.knowsListener(this.config.deliver_subject)) return this.#wait()
      server.send(
        this.config.deliver_subject,
        status(this.config.deliver_subject, 100, "Idle Heartbeat", {
          "Nats-Last-Consumer": `${this.#delivered}`,
          "Nats-Last-Stream": `${this.#lastSequence}`
        })
      )
      this.#rest()
    })
  }

  /** Pauses without a listener, and ends if none comes for long. */
  #wait(): void {
    if (this.#look !== undefined && !this.#look.isCancelled) return
    const { server, world } = this.#options
    const longestMs = (this.config.inactive_threshold ?? 5_000 * nanosPerMs) / nanosPerMs
    this.#lookMs = Math.min(2 * this.#lookMs, lookMs.longest)
    this.#look = world.after(this.#lookMs, server.machine, () => {
      this.#look = undefined
      if (world.now - this.#heardAt > longestMs) this.end()
      else this.pump()
    })
  }
}
