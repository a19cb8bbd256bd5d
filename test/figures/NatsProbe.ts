/**
 * Observes when NATS itself serves the queue of chat jobs: a client of its own publishes to the stream and asks the workers'
 * consumer for its state, through each server in turn.
 */
import type { NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { jobSubject, newestOf, queueStateSubject } from "../../shared/bus/protocol/Subjects.ts"
import type { NatsCluster } from "../fixture/nats/NatsCluster.ts"
import type { SecureNats } from "../fixture/nats/SecureNats.ts"
import { pauses, type Span, union } from "./Pauses.ts"

const everyMs = 50

/** A shorter pause says nothing: a server that is away misses every third probe. */
const leastMs = 250

/** A pool without workers, so that the probe's jobs stay in the stream. */
const subjects = {
  publish: jobSubject("chat", "probe", newestOf("chat")),
  consume: queueStateSubject("chat", "default", newestOf("chat"))
}

export class NatsProbe {
  /** The times of acknowledged publishes, and of answers from the consumer's leader. */
  readonly #answered = { publish: new Array<number>(), consume: new Array<number>() }
  readonly #connections: ReadonlyArray<NatsConnection>
  readonly #timer: NodeJS.Timeout
  #turn = 0

  /** Starts at once; call `stop` at the end. */
  static async start(nats: SecureNats<NatsCluster>): Promise<NatsProbe> {
    const options = { ...nats.optionsOf("ingress"), maxReconnectAttempts: -1, reconnectTimeWait: 100 }
    return new NatsProbe(
      await Promise.all(
        nats.server.nodes.map(({ url }) => connect({ ...options, servers: url, ignoreClusterUpdates: true }))
      )
    )
  }

  private constructor(connections: ReadonlyArray<NatsConnection>) {
    this.#connections = connections
    this.#timer = setInterval(() => {
      const connection = connections[this.#turn++ % connections.length]
      if (connection === undefined) return
      void this.#ask(connection, "publish")
      void this.#ask(connection, "consume")
    }, everyMs)
  }

  /** When NATS did not acknowledge publishes or the consumer had no leader. */
  pauses(during: Span): ReadonlyArray<Span> {
    return union(Object.values(this.#answered).flatMap((times) => pauses(times, during, leastMs)))
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }

  async #ask(connection: NatsConnection, what: keyof typeof subjects): Promise<void> {
    try {
      const answer = await connection.request(subjects[what], "", { timeout: 1_000 })
      if (!("error" in answer.json<object>())) this.#answered[what].push(performance.now())
    } catch {
      // no answer
    }
  }
}
