/**
 * The requests of JetStream that buckets and object stores use: their streams, direct gets from any server, reads at the leader,
 * roll-ups and purges, and ordered consumers. Followers may be behind, and a watch may lose messages.
 */
import { DateTime } from "effect"
import { epochMs } from "../world/Interposition.ts"
import type { Cluster } from "./Cluster.ts"
import { KeyValueStream } from "./KeyValueStream.ts"
import { json, type Message, status } from "./Protocol.ts"
import { type PushConfig, PushConsumer } from "./PushConsumer.ts"
import type { Server } from "./Server.ts"
import type { Stored, Stream, StreamConfig } from "./Stream.ts"

/** Runs `run` at the leader of a stream when the request has arrived there. */
export type AtLeader = (at: Server, stream: Stream, run: (leader: Server) => void) => void

/** The answer of a server that knows no leader. */
export const unavailable = {
  error: { code: 503, err_code: 10_008, description: "JetStream system temporarily unavailable" }
}

export const isKeyValue = (name: string): boolean => name.startsWith("KV_") || name.startsWith("OBJ_")

const missing = (what: string, code: number) => ({ error: { code: 404, err_code: code, description: what } })

const timeOf = ({ at }: Stored): string => DateTime.formatIso(DateTime.makeUnsafe(epochMs + at))

export class KeyValue {
  readonly #cluster: Cluster
  readonly #streams: Map<string, Stream>
  readonly #atLeader: AtLeader
  readonly #consumers = new Map<string, PushConsumer>()
  /** Until when each server's log is behind, and by how much, in milliseconds. */
  readonly #stale = new Map<Server, { readonly until: number; readonly ms: number }>()

  constructor(cluster: Cluster, streams: Map<string, Stream>, atLeader: AtLeader) {
    this.#cluster = cluster
    this.#streams = streams
    this.#atLeader = atLeader
  }

  /** Keeps a server's log 0.1 to 3 s behind that of the leaders, for `forMs`. */
  makeStale(server: Server, forMs: number): void {
    const { world } = this.#cluster
    this.#stale.set(server, { until: world.now + forMs, ms: world.random.between(100, 3_000) })
  }

  /** Makes every watch lose its next messages. */
  loseMessages(count: number): void {
    for (const consumer of this.#consumers.values()) consumer.miss(count)
  }

  /** Resumes the consumers of a server that is back. */
  serverBack(server: Server): void {
    for (const consumer of this.#consumers.values()) {
      if (consumer.server === server) this.#cluster.world.after(0, server.machine, () => consumer.resume())
    }
  }

  get watches(): number {
    return this.#consumers.size
  }

  /** Answers a request. Returns `false` if it is not one of these. */
  accept(at: Server, message: Message): boolean {
    const { subject } = message
    if (!subject.startsWith("$JS.API.")) return false
    const [, , kind = "", action = "", ...names] = subject.split(".")
    if (kind === "INFO") {
      this.#answer(at, message, {
        type: "io.nats.jetstream.api.v1.account_info_response",
        memory: 0,
        storage: 0,
        streams: this.#streams.size,
        consumers: this.#consumers.size,
        limits: {},
        api: { total: 0, errors: 0 }
      })
      return true
    }
    const { world } = this.#cluster
    const name = (action === "MSG" ? names[1] : names[0]) ?? ""
    if (!isKeyValue(name)) return false
    if (kind === "STREAM" && action === "CREATE") this.#create(at, message)
    else {
      const stream = this.#streams.get(name)
      if (!(stream instanceof KeyValueStream)) this.#answer(at, message, missing("stream not found", 10_059))
      else if (kind === "STREAM" && action === "MSG" && this.#isStale(at)) {
        // the server was the leader, and does not know yet that it was replaced
        this.#ask(at, stream, action, message, this.#stale.get(at)?.ms)
      } else if (kind === "DIRECT") this.#readHere(at, stream, names.slice(1).join("."), message)
      else if (kind === "STREAM") {
        // a former leader may keep the request from its successor
        const isMisled = stream.group.behindMs(at) > 0 && world.random.chance(0.5)
        this.#atLeader(at, stream, (leader) => {
          if (isMisled && leader !== at) return
          const behindMs = stream.group.behindMs(leader)
          // a former leader answers with what it knew, or that it is unavailable, or not at all
          if (behindMs === 0 || world.random.chance(0.3)) this.#ask(leader, stream, action, message, behindMs)
          else if (world.random.chance(0.5)) this.#answer(leader, message, unavailable)
        })
      } else this.#atLeader(at, stream, (leader) => this.#consume(leader, stream, action, names[1] ?? "", message))
    }
    return true
  }

  #answer(server: Server, { reply }: Message, value: object): void {
    if (reply !== "") server.send(reply, json(reply, value))
  }

  #create(at: Server, message: Message): void {
    const config = JSON.parse(message.payload.toString()) as StreamConfig
    const { world } = this.#cluster
    const known = this.#streams.get(config.name)
    const stream = known ?? new KeyValueStream(world, config, at)
    this.#streams.set(config.name, stream)
    if (known === undefined && stream instanceof KeyValueStream) {
      stream.onPublish.push(() => {
        for (const [key, consumer] of this.#consumers) {
          if (!key.startsWith(`${config.name} `)) continue
          const { server } = consumer
          if (server === stream.leader) world.after(0, server.machine, () => consumer.pump())
          else if (stream.leader !== undefined) {
            this.#cluster.inOrder(stream.leader, server, () => consumer.pump())
          }
        }
      })
    }
    this.#answer(at, message, infoOf(stream))
  }

  /** Answers a request to the leader about a stream. */
  #ask(leader: Server, stream: KeyValueStream, action: string, message: Message, agoMs = 0): void {
    const asked = message.payload.length === 0 ? {} : JSON.parse(message.payload.toString()) as {
      readonly subjects_filter?: string
      readonly filter?: string
      readonly keep?: number
      readonly last_by_subj?: string
      readonly next_by_subj?: string
      readonly seq?: number
    }
    if (action === "INFO") {
      const { subjects_filter } = asked
      const info = infoOf(stream)
      const state = subjects_filter === undefined
        ? info.state
        : { ...info.state, subjects: stream.subjects(subjects_filter) }
      this.#answer(leader, message, { ...info, state })
    } else if (action === "PURGE") {
      const purged = stream.purge(asked.filter ?? ">", asked.keep ?? 0)
      this.#answer(leader, message, {
        type: "io.nats.jetstream.api.v1.stream_purge_response",
        success: true,
        purged
      })
    } else if (action === "MSG") {
      const { last_by_subj, next_by_subj, seq = 1 } = asked
      const stored = last_by_subj !== undefined
        ? stream.lastOf(last_by_subj, agoMs)
        : next_by_subj !== undefined
        ? stream.nextOf(next_by_subj, seq)
        : stream.messages.get(seq)
      this.#answer(
        leader,
        message,
        stored === undefined ? missing("no message found", 10_037) : {
          type: "io.nats.jetstream.api.v1.stream_msg_get_response",
          message: {
            subject: stored.message.subject,
            seq: stored.sequence,
            time: timeOf(stored),
            data: stored.message.payload.toString("base64"),
            ...(stored.message.headers.length === 0 ? {} : { hdrs: stored.message.headers.toString("base64") })
          }
        }
      )
    }
  }

  /** Answers a direct get from this server's own log. */
  #readHere(at: Server, stream: KeyValueStream, subject: string, { payload, reply }: Message): void {
    const asked = payload.length === 0 ? {} : JSON.parse(payload.toString()) as { readonly seq?: number }
    const stored = subject !== ""
      ? stream.lastOf(subject, this.#lagMs(at, stream))
      : stream.messages.get(asked.seq ?? 0)
    if (stored === undefined) return void at.send(reply, status(reply, 404, "Message Not Found"))
    const fields = [
      `Nats-Stream: ${stream.config.name}`,
      `Nats-Subject: ${stored.message.subject}`,
      `Nats-Sequence: ${stored.sequence}`,
      `Nats-Time-Stamp: ${timeOf(stored)}`
    ].map((line) => `${line}\r\n`).join("")
    const { headers } = stored.message
    const own = headers.length === 0 ? "NATS/1.0\r\n\r\n" : headers.toString("latin1")
    at.send(reply, {
      subject: reply,
      reply: "",
      headers: Buffer.from(own.replace(/\r\n$/, `${fields}\r\n`), "latin1"),
      payload: stored.message.payload
    })
  }

  /** Whether a server's log is behind, which happens only in a cluster. */
  #isStale(server: Server): boolean {
    const stale = this.#stale.get(server)
    return stale !== undefined && this.#cluster.world.now < stale.until && this.#cluster.servers.length > 1
  }

  #lagMs(server: Server, stream: Stream): number {
    if (server === stream.leader) return 0
    return this.#isStale(server) ? this.#stale.get(server)?.ms ?? 0 : 0.5
  }

  #consume(leader: Server, stream: KeyValueStream, action: string, name: string, message: Message): void {
    const key = `${stream.config.name} ${name}`
    const known = this.#consumers.get(key)
    if (action === "DELETE") {
      known?.end()
      return this.#answer(
        leader,
        message,
        known === undefined ? missing("consumer not found", 10_014) : { success: true }
      )
    }
    if (action === "INFO") {
      return this.#answer(
        leader,
        message,
        known === undefined ? missing("consumer not found", 10_014) : consumerInfo(stream, known)
      )
    }
    const { world } = this.#cluster
    const { config } = JSON.parse(message.payload.toString()) as { readonly config: PushConfig }
    const alive = this.#cluster.servers.filter(({ machine }) => machine.isAlive)
    const server = world.random.pick(alive)
    const consumer = known ?? new PushConsumer({
      world,
      stream,
      server,
      config,
      lagMs: () => this.#lagMs(server, stream),
      onEnd: () => void this.#consumers.delete(key)
    })
    if (known === undefined) {
      this.#consumers.set(key, consumer)
      world.after(0, server.machine, () => consumer.pump())
    }
    this.#answer(leader, message, consumerInfo(stream, consumer))
  }
}

const consumerInfo = ({ config: { name } }: Stream, consumer: PushConsumer) => ({
  type: "io.nats.jetstream.api.v1.consumer_create_response",
  stream_name: name,
  name: consumer.config.name,
  config: consumer.config,
  num_pending: consumer.pending,
  push_bound: false
})

const infoOf = ({ config, createdAt, group, last, messages }: Stream) => ({
  type: "io.nats.jetstream.api.v1.stream_info_response",
  config,
  created: DateTime.formatIso(DateTime.makeUnsafe(epochMs + createdAt)),
  state: {
    messages: messages.size,
    bytes: 0,
    first_seq: [...messages.keys()][0] ?? last + 1,
    last_seq: last,
    consumer_count: 0
  },
  cluster: group.info
})
