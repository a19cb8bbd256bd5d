/** Actions of scripts on JetStream, with outcomes as short texts. */
import type { ConsumerConfig, JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import { AckPolicy, DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { createInbox, headers, type Msg, nanos } from "@nats-io/nats-core"
import type { Client, Script, Stage } from "./Script.ts"

/** How long to wait for an answer that should come at once, in milliseconds. */
const soonMs = 2_000

export const managerOf = ({ connection }: Client, timeout = soonMs): Promise<JetStreamManager> =>
  jetstreamManager(connection, { checkAPI: false, timeout })

/** How long servers may take to elect, even on a busy machine, in milliseconds. */
const electedWithinMs = 60_000

/** Repeats a request until it is answered. During elections, servers do not answer, or answer that they cannot. */
export const patiently = async <A>(stage: Stage, ask: () => Promise<A>, withinMs = electedWithinMs): Promise<A> => {
  const until = performance.now() + withinMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() > until) throw error
      await stage.rest(100)
    }
  }
}

/** A stream like those of jobs, on disk, unless `config` says otherwise. */
export const createStream = async (stage: Stage, client: Client, config: Partial<StreamConfig> = {}): Promise<void> => {
  const manager = await managerOf(client, 5_000)
  await patiently(stage, () =>
    manager.streams.add({
      name: stage.name,
      subjects: [`${stage.name}.>`],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      ...config
    }))
}

/** A script whose `run` gets the result of `prepare`. All of its runs begin together. */
export const prepared = <Made extends Array<unknown>>(
  script: Pick<Script, "name" | "shows" | "isClustered">,
  prepare: (stage: Stage) => Promise<readonly [...Made]>,
  run: (...made: Made) => Promise<string>
): Script => ({
  ...script,
  run: async (stage) => {
    const made = await prepare(stage)
    await stage.together()
    return run(...made)
  }
})

/** A script with a client and a stream. */
export const withStream = (
  name: string,
  shows: string,
  run: (stage: Stage, client: Client) => Promise<string>,
  config: Partial<StreamConfig> = {}
): Script =>
  prepared({ name, shows, isClustered: false }, async (stage) => {
    const client = await stage.connect()
    await createStream(stage, client, config)
    return [stage, client]
  }, run)

/** The consumer of all jobs; `ackWaitMs` is in milliseconds. */
export const createConsumer = async (
  stage: Stage,
  client: Client,
  ackWaitMs: number,
  config: Partial<ConsumerConfig> = {}
): Promise<void> => {
  const manager = await managerOf(client, 5_000)
  await patiently(stage, () =>
    manager.consumers.add(stage.name, {
      durable_name: "jobs",
      filter_subject: `${stage.name}.job`,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ackWaitMs),
      ...config
    }))
}

/** `stored 1`, `duplicate 1`, what the server says instead, `503` without a listener, or `silence`. */
export const publish = async (stage: Stage, client: Client, id?: string, withinMs = soonMs): Promise<string> => {
  const head = headers()
  if (id !== undefined) head.set("Nats-Msg-Id", `${stage.name}-${id}`)
  try {
    const answer = await client.connection.request(`${stage.name}.job`, "job", { timeout: withinMs, headers: head })
    const { duplicate, error, seq } = answer.json<
      { seq: number; duplicate?: boolean; error?: { description: string } }
    >()
    return error === undefined ? `${duplicate === true ? "duplicate" : "stored"} ${seq}` : error.description
  } catch (error) {
    return failureOf(error)
  }
}

export const failureOf = (error: unknown): string =>
  /no responders/i.test(String(error)) ? "503" : /timeout/i.test(String(error)) ? "silence" : String(error)

/** Publishes until it is stored: the failures in the order of their first occurrence, and the end. */
export const publishUntilStored = async (stage: Stage, client: Client, id: string): Promise<string> => {
  const seen = new Set<string>()
  const until = performance.now() + electedWithinMs
  for (;;) {
    const outcome = await publish(stage, client, id, 300)
    if (/^(stored|duplicate)/.test(outcome) || performance.now() > until) {
      return [...[...seen].toSorted(), outcome].join(", ")
    }
    seen.add(outcome)
    await stage.rest(20)
  }
}

/** A message of a consumer, or a status of its server. */
export interface Delivery {
  /** `409 Leadership Change`, or empty for a message. */
  readonly status: string
  readonly sequence: number
  /** How often the message was delivered, this delivery included. */
  readonly times: number
  readonly settle: (word: string) => void
}

export interface Pull {
  /** The next delivery, but no heartbeat; `undefined` if none comes in time. */
  readonly next: (withinMs: number) => Promise<Delivery | undefined>
  /** How many heartbeats came. */
  readonly heartbeats: () => number
}

export interface PullOptions {
  readonly batch?: number
  readonly expiresMs?: number
  readonly heartbeatMs?: number
}

/** A pull request, as workers send it. */
export const pull = (
  stage: Stage,
  { connection }: Client,
  { batch = 1, expiresMs = 20_000, heartbeatMs }: PullOptions = {}
): Pull => {
  const inbox = createInbox()
  const arrived: Array<Delivery> = []
  let wake = () => {}
  let heartbeats = 0
  connection.subscribe(inbox, {
    callback: (_, message) => {
      const delivery = deliveryOf(message, connection)
      if (delivery.status.startsWith("100")) heartbeats++
      else {
        arrived.push(delivery)
        wake()
      }
    }
  })
  const request = {
    batch,
    expires: nanos(expiresMs),
    ...(heartbeatMs === undefined ? {} : { idle_heartbeat: nanos(heartbeatMs) })
  }
  connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stage.name}.jobs`, JSON.stringify(request), { reply: inbox })
  return {
    heartbeats: () => heartbeats,
    next: async (withinMs) => {
      const arrives = new Promise<void>((resolve) => void (wake = resolve))
      if (arrived.length === 0) await Promise.race([stage.sleep(withinMs), arrives])
      return arrived.shift()
    }
  }
}

const deliveryOf = ({ headers, reply = "" }: Msg, connection: Client["connection"]): Delivery => {
  // $JS.ACK.<stream>.<consumer>.<times>.<sequence>; newer servers may put domain and account before the stream
  const tokens = reply.split(".")
  const first = tokens.length > 9 ? 6 : 4
  return {
    status: reply === "" ? `${headers?.code} ${headers?.description}`.trim() : "",
    sequence: Number(tokens[first + 1]),
    times: Number(tokens[first]),
    settle: (word) => connection.publish(reply, word)
  }
}

/** `as 1`, a status, or `nothing`. */
export const textOf = (delivery: Delivery | undefined): string =>
  delivery === undefined ? "nothing" : delivery.status === "" ? `as ${delivery.times}` : delivery.status

/** How many messages the stream has, and the sequence of its last one. */
export const stored = async (stage: Stage, client: Client): Promise<string> => {
  const manager = await managerOf(client)
  const { state } = await patiently(stage, () => manager.streams.info(stage.name))
  return `${state.messages} of ${state.last_seq}`
}

/** The server that leads the stream, or its consumer. */
export const leaderOf = async (
  stage: Stage,
  client: Client,
  of: "stream" | "consumer",
  stream = stage.name
): Promise<number> => {
  const manager = await managerOf(client)
  return await patiently(stage, async () => {
    const { cluster } = await (of === "stream"
      ? manager.streams.info(stream)
      : manager.consumers.info(stream, "jobs"))
    const [, number] = /-(\d+)$/.exec(cluster?.leader ?? "") ?? []
    if (number === undefined) throw new Error("no leader")
    return Number(number)
  })
}
