/** JetStream of a simulated cluster: its streams and their leaders, and its requests by subject. */
import { DateTime } from "effect"
import { epochMs } from "../world/Interposition.ts"
import type { Cluster } from "./Cluster.ts"
import type { Consumer, ConsumerConfig } from "./Consumer.ts"
import type { Group } from "./Group.ts"
import { KeyValue, unavailable } from "./KeyValue.ts"
import { json, type Message } from "./Protocol.ts"
import type { Server } from "./Server.ts"
import { Stream, type StreamConfig } from "./Stream.ts"

const notFound = (what: string, code: number) => ({
  error: { code: 404, err_code: code, description: `${what} not found` }
})

/** After how long a server reports that there is no leader, in milliseconds. */
const unavailableMs = 500

export class JetStream {
  readonly #cluster: Cluster
  readonly streams = new Map<string, Stream>()
  /** Streams that were lost with their server. */
  readonly #gone: Array<Stream> = []
  readonly keyValue: KeyValue

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.keyValue = new KeyValue(cluster, this.streams, (at, stream, run) => this.#atLeader(at, stream, run))
  }

  /** Whether every stream and consumer has a leader that all servers know. */
  get isWhole(): boolean {
    return this.#groups.every(({ isWhole }) => isWhole)
  }

  /** Whether a message with this id was stored, but is gone although no client has acknowledged it. */
  hasLost(id: string): boolean {
    const streams = [...this.#gone, ...this.streams.values()]
    if (streams.some(({ mistaken }) => mistaken.has(id))) return true
    return streams.some(({ forgotten }) => forgotten.has(id)) && !streams.some((stream) => stream.knows(id))
  }

  /** Whether a stream of this name has ever stored a message with this id. */
  hasStored(name: string, id: string): boolean {
    return [...this.#gone, ...this.streams.values()].some(({ config, history }) =>
      config.name === name && history.has(id)
    )
  }

  /** Whether a message with this id was stored where its consumer had already delivered a lost one, and was never delivered. */
  hasPassedOver(id: string): boolean {
    return [...this.#gone, ...this.streams.values()].some(({ history }) => {
      const passage = history.get(id)
      return passage?.isBehind === true && passage.deliveredAt === undefined
    })
  }

  /** Whether a consumer has delivered the message with this id again as if for the first time. */
  hasRecounted(id: string): boolean {
    return [...this.#gone, ...this.streams.values()].some(({ recounted }) => recounted.has(id))
  }

  /** Takes a message for JetStream. Returns `false` if its subject is not one of JetStream's. */
  accept(at: Server, message: Message): boolean {
    const { subject } = message
    if (this.keyValue.accept(at, message)) return true
    if (subject.startsWith("$JS.ACK.")) {
      const [, , name = "", consumerName = "", , sequence, , nanos = ""] = subject.split(".")
      const consumer = this.streams.get(name)?.consumers.get(consumerName)
      this.#atLeader(at, consumer, (leader) => {
        const settle = () => {
          // a former leader changes nothing
          if (consumer === undefined || consumer.leader !== leader || !consumer.group.hasMajority) return
          consumer.settle(Number(sequence), nanos, message.payload.toString("latin1"))
        }
        // a pull request may overtake it
        if (this.#cluster.servers.length === 1) settle()
        else this.#cluster.inOrder(leader, leader, settle)
      })
      return true
    }
    if (subject.startsWith("$JS.API.")) return this.#request(at, message)
    const tokens = subject.split(".")
    for (const stream of this.streams.values()) {
      if (!stream.takes(tokens)) continue
      // like any subject without a listener
      if (stream.group.answering(at).length === 0) return false
      this.#atLeader(at, stream, (leader) =>
        stream.propose(leader, (by) => {
          const ack = stream.publish(message)
          if (message.reply === "" || stream.losesAcks) return
          by?.send(message.reply, json(message.reply, ack))
        }))
      return true
    }
    return false
  }

  /** Reacts to servers that came, left or became unreachable. */
  review(): void {
    for (const stream of this.streams.values()) stream.review()
  }

  /** Tells a server who leads. */
  tell(server: Server): void {
    for (const group of this.#groups) group.tell(server)
  }

  /** Drops what was only in the memory of a server that is gone. */
  serverLost(): void {
    for (const [name, stream] of this.streams) {
      const { config, group } = stream
      if (config.storage === "memory" && group.peers.length === 1 && this.#cluster.servers.length === 1) {
        this.streams.delete(name)
        stream.forgetAll()
        this.#gone.push(stream)
      }
    }
    this.review()
  }

  /** Reacts to a server that is back. */
  serverBack(server: Server): void {
    for (const stream of this.streams.values()) if (stream.group.peers.includes(server)) stream.restarted(server)
    this.keyValue.serverBack(server)
    this.review()
  }

  get #groups(): ReadonlyArray<Group> {
    return [...this.streams.values()].flatMap(({ consumers, group }) => [
      group,
      ...[...consumers.values()].map((consumer) => consumer.group)
    ])
  }

  /** Runs `run` at the leader and at the servers that believe that they lead; not at all if there are none. */
  #atLeader(at: Server, led: Stream | Consumer | undefined, run: (leader: Server) => void): void {
    for (const server of led?.group.answering(at) ?? []) {
      if (server === at) run(server)
      else this.#cluster.inOrder(at, server, () => run(server))
    }
  }

  #request(at: Server, message: Message): boolean {
    const [, , kind, action, ...names] = message.subject.split(".")
    const answer = (server: Server, value: object) => {
      if (message.reply !== "") server.send(message.reply, json(message.reply, value))
    }
    const isSecond = action === "MSG" || action === "DURABLE" || action === "LEADER"
    const stream = this.streams.get((isSecond ? names[1] : names[0]) ?? "")
    if (kind === "STREAM" && action === "CREATE") this.#createStream(at, message, answer)
    else if (action === "MSG") {
      const consumer = stream?.consumers.get(names[2] ?? "")
      this.#atLeader(at, consumer, (leader) => {
        if (consumer?.leader === leader) consumer.pull(message.reply, JSON.parse(message.payload.toString()) as object)
      })
    } else if (stream === undefined) {
      // the servers together know what exists
      if (this.#cluster.hasMajority) answer(at, notFound("stream", 10_059))
    } else if (kind === "STREAM") {
      this.#ask(at, stream, answer, (leader) => {
        if (action === "LEADER") stream.group.stepDown()
        answer(leader, infoOf(stream))
      })
    } else this.#requestConsumer(at, stream, message, answer)
    return true
  }

  #createStream(at: Server, message: Message, answer: (server: Server, value: object) => void): void {
    if (!this.#cluster.hasMajority) return
    const config = JSON.parse(message.payload.toString()) as StreamConfig
    const made = this.streams.get(config.name) ?? new Stream(this.#cluster.world, config, at)
    this.streams.set(config.name, made)
    if (made.leader !== undefined) answer(made.leader, infoOf(made))
  }

  #requestConsumer(
    at: Server,
    stream: Stream,
    { payload, subject }: Message,
    answer: (server: Server, value: object) => void
  ): void {
    const [, , , action, ...names] = subject.split(".")
    if (action === "CREATE" || action === "DURABLE") {
      if (!this.#cluster.hasMajority) return
      const consumer = stream.ensureConsumer((JSON.parse(payload.toString()) as { config: ConsumerConfig }).config)
      // its leader answers, so that a client that hears of it reaches it
      if (consumer.leader !== undefined) answer(consumer.leader, consumerInfoOf(stream, consumer))
      return
    }
    const name = (action === "LEADER" ? names[2] : names[1]) ?? ""
    const consumer = stream.consumers.get(name)
    if (consumer === undefined) return answer(at, notFound("consumer", 10_014))
    if (action === "DELETE") {
      if (!this.#cluster.hasMajority) return
      stream.deleteConsumer(name)
      return answer(at, { success: true })
    }
    this.#ask(at, consumer, answer, (leader) => {
      if (action === "LEADER") consumer.group.stepDown()
      answer(leader, action === "LEADER" ? { success: true } : consumerInfoOf(stream, consumer))
    })
  }

  /** Asks the leader. Without one, the other servers report that after a while, or no server answers. */
  #ask(
    at: Server,
    led: Stream | Consumer,
    answer: (server: Server, value: object) => void,
    run: (leader: Server) => void
  ): void {
    const { world } = this.#cluster
    if (led.group.answering(at).length > 0) return this.#atLeader(at, led, run)
    if (!world.random.chance(0.5)) return
    world.after(unavailableMs, at.machine, () => answer(at, unavailable))
  }
}

const timeOf = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(epochMs + ms))

const infoOf = (stream: Stream) => {
  stream.expire()
  const { bytes, config, consumers, createdAt, group, last, messages } = stream
  return {
    type: "io.nats.jetstream.api.v1.stream_info_response",
    config,
    created: timeOf(createdAt),
    state: {
      messages: messages.size,
      bytes,
      first_seq: [...messages.keys()][0] ?? last + 1,
      last_seq: last,
      consumer_count: consumers.size
    },
    cluster: group.info
  }
}

const consumerInfoOf = ({ config: { name } }: Stream, consumer: Consumer) => ({
  type: "io.nats.jetstream.api.v1.consumer_info_response",
  stream_name: name,
  name: consumer.config.durable_name,
  created: timeOf(0),
  config: consumer.config,
  delivered: { consumer_seq: consumer.delivered, stream_seq: consumer.cursor },
  ack_floor: { consumer_seq: 0, stream_seq: 0 },
  num_ack_pending: consumer.unacknowledged,
  num_redelivered: 0,
  num_waiting: consumer.waiting,
  num_pending: consumer.undelivered,
  cluster: consumer.group.info
})
