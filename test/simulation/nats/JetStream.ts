/** JetStream of a cluster: its streams, who leads them, and its requests by subject. */
import { DateTime } from "effect"
import { epochMs } from "../world/Interposition.ts"
import type { Cluster } from "./Cluster.ts"
import type { ConsumerConfig } from "./Consumer.ts"
import { json, type Message } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import { Stream, type StreamConfig } from "./Stream.ts"

const notFound = (what: string, code: number) => ({
  error: { code: 404, err_code: code, description: `${what} not found` }
})

export class JetStream {
  readonly #cluster: Cluster
  readonly streams = new Map<string, Stream>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** Takes a message that is for JetStream. `false` if nothing of it has the subject. */
  accept(at: Server, message: Message): boolean {
    const { subject } = message
    if (subject.startsWith("$JS.ACK.")) {
      const [, , stream = "", consumer = "", deliveries, sequence] = subject.split(".")
      this.#atLeader(at, this.streams.get(stream), () => {
        const word = message.payload.toString("latin1")
        this.streams.get(stream)?.consumers.get(consumer)?.settle(Number(sequence), Number(deliveries), word)
      })
      return true
    }
    if (subject.startsWith("$JS.API.")) return this.#request(at, message)
    const tokens = subject.split(".")
    for (const stream of this.streams.values()) {
      if (!stream.takes(tokens)) continue
      if (stream.leader?.machine.isAlive !== true) return false
      this.#atLeader(at, stream, (leader) => {
        const ack = stream.publish(message)
        if (message.reply !== "") leader.send(message.reply, json(message.reply, ack))
      })
      return true
    }
    return false
  }

  /** The server is gone: its streams get another leader, or are gone as well. */
  serverLost(server: Server): void {
    const { world } = this.#cluster
    for (const stream of this.streams.values()) {
      if (stream.leader !== server) continue
      stream.lead(undefined)
      const others = this.#cluster.others(server).filter(({ machine }) => machine.isAlive)
      if (others.length === 0) {
        if (stream.config.storage === "memory") this.streams.delete(stream.config.name)
        continue
      }
      const next = world.random.pick(others)
      world.after(world.random.between(1_000, 5_000), next.machine, () => stream.lead(next))
    }
  }

  /** The server is back: it leads the streams that wait for one. */
  serverBack(server: Server): void {
    for (const stream of this.streams.values()) {
      if (stream.leader?.machine.isAlive !== true) stream.lead(server)
    }
  }

  #atLeader(at: Server, stream: Stream | undefined, run: (leader: Server) => void): void {
    const leader = stream?.leader
    // JetStream does not answer while it elects a leader
    if (leader === undefined) return
    if (leader === at) run(leader)
    else this.#cluster.inOrder(at, leader, () => stream?.leader === leader ? run(leader) : undefined)
  }

  #request(at: Server, message: Message): boolean {
    const [, , kind, action, ...names] = message.subject.split(".")
    const answer = (server: Server, value: object) => {
      if (message.reply !== "") server.send(message.reply, json(message.reply, value))
    }
    const stream = this.streams.get((action === "MSG" ? names[1] : action === "DURABLE" ? names[1] : names[0]) ?? "")
    if (kind === "STREAM" && action === "CREATE") {
      const config = JSON.parse(message.payload.toString()) as StreamConfig
      const made = this.streams.get(config.name) ?? new Stream(this.#cluster.world, config, at)
      this.streams.set(config.name, made)
      answer(at, infoOf(made))
    } else if (kind === "STREAM" && action === "INFO") {
      if (stream === undefined) answer(at, notFound("stream", 10_059))
      else this.#atLeader(at, stream, (leader) => answer(leader, infoOf(stream)))
    } else if (kind === "CONSUMER" && action === "MSG") {
      this.#atLeader(at, stream, () => {
        const pull = JSON.parse(message.payload.toString()) as object
        stream?.consumers.get(names[2] ?? "")?.pull(message.reply, pull)
      })
    } else if (kind === "CONSUMER") {
      if (stream === undefined) answer(at, notFound("stream", 10_059))
      else {
        this.#atLeader(at, stream, (leader) => {
          if (action !== "INFO") {
            stream.ensureConsumer((JSON.parse(message.payload.toString()) as { config: ConsumerConfig }).config)
          }
          const consumer = stream.consumers.get((action === "DURABLE" ? names[2] : names[1]) ?? "")
          answer(
            leader,
            consumer === undefined ? notFound("consumer", 10_014) : {
              type: "io.nats.jetstream.api.v1.consumer_info_response",
              stream_name: stream.config.name,
              name: consumer.config.durable_name,
              config: consumer.config
            }
          )
        })
      }
    }
    return true
  }
}

const infoOf = ({ config, createdAt, last, messages }: Stream) => ({
  type: "io.nats.jetstream.api.v1.stream_info_response",
  config,
  created: DateTime.formatIso(DateTime.makeUnsafe(epochMs + createdAt)),
  state: {
    messages: messages.size,
    bytes: 0,
    first_seq: [...messages.keys()][0] ?? last + 1,
    last_seq: last,
    consumer_count: 1
  }
})
