/** Scripts about a cluster of three that loses leaders of streams and consumers. */
import { StorageType, type StreamConfig } from "@nats-io/jetstream"
import {
  createConsumer,
  createStream,
  leaderOf,
  managerOf,
  patiently,
  prepared,
  publish,
  publishUntilStored,
  pull,
  stored,
  textOf
} from "./Actions.ts"
import { type Client, clusterSize, type Script, type Stage } from "./Script.ts"

const ackWaitMs = 2_000

interface Scene {
  readonly stage: Stage
  /** A client of a server that does not lead the stream and, if there is such a server, does not lead the consumer either. */
  readonly client: Client
  readonly stream: number
  readonly consumer: number
}

/** A script with a stream of three replicas and a consumer. */
const script = (
  name: string,
  shows: string,
  run: (scene: Scene) => Promise<string>,
  config: Partial<StreamConfig> = {}
): Script =>
  prepared({ name, shows, isClustered: true }, async (stage) => {
    const first = await stage.connect(0)
    await createStream(stage, first, { num_replicas: clusterSize, ...config })
    await createConsumer(stage, first, ackWaitMs)
    const stream = await leaderOf(stage, first, "stream")
    const consumer = await leaderOf(stage, first, "consumer")
    const all = [0, 1, 2]
    const free = all.find((server) => server !== stream && server !== consumer) ??
      all.find((server) => server !== stream)
    return [{ stage, client: await stage.connect(free), stream, consumer }]
  }, run)

/** Deliveries of a new pull request, until none comes for a while. */
const drain = async (stage: Stage, client: Client, quietMs: number): Promise<string> => {
  const seen: Array<string> = []
  const until = pull(stage, client, { batch: 10 })
  for (;;) {
    const delivery = await until.next(quietMs)
    if (delivery === undefined) return seen.length === 0 ? "nothing" : seen.join(", ")
    seen.push(textOf(delivery))
    delivery.settle("+ACK")
  }
}

export const clusterScripts: ReadonlyArray<Script> = [
  script("messages while the stream's leader is dead", "503 and silence", async ({ client, stage, stream }) => {
    await stage.strike("kill", stream)
    const outcome = await publishUntilStored(stage, client, "a")
    await stage.heal()
    return outcome
  }),

  script(
    "messages while the stream's leader is frozen",
    "a stale leader, silence",
    async ({ client, stage, stream }) => {
      await stage.strike("freeze", stream)
      const outcome = await publishUntilStored(stage, client, "a")
      await stage.heal()
      await stage.sleep(1_000)
      return `${outcome}: ${await stored(stage, client)}`
    }
  ),

  script("the id of a stored message after an election", "ids survive elections", async ({ client, stage, stream }) => {
    await publish(stage, client, "a")
    await stage.strike("kill", stream)
    const outcome = await publishUntilStored(stage, client, "a")
    await stage.heal()
    return outcome.replace(/^.*, /, "")
  }),

  script("a message while the stream's leader dies", "a lost acknowledgement", async ({ client, stage, stream }) => {
    let answer: Promise<string> | undefined
    await stage.strike("kill", stream, () => void (answer = publish(stage, client, "a")))
    const first = (await answer!).replace(/ \d+$/, "")
    const second = (await publishUntilStored(stage, client, "a")).replace(/^.*, /, "")
    await stage.heal()
    return `${first}, then ${second}`
  }),

  script("a pull request whose leader steps down", "pulls vanish, with or without a 409", async ({ client, stage }) => {
    const request = pull(stage, client)
    await client.connection.flush()
    await stage.sleep(100)
    const manager = await managerOf(client)
    await patiently(
      stage,
      () => client.connection.request(`$JS.API.CONSUMER.LEADER.STEPDOWN.${stage.name}.jobs`, "", { timeout: 1_000 })
    )
    await patiently(stage, () => manager.consumers.info(stage.name, "jobs"))
    await publishUntilStored(stage, client, "a")
    return textOf(await request.next(1_500))
  }),

  script("a pull request whose leader dies", "pulls vanish with the consumer's leader", async (scene) => {
    const { client, consumer, stage } = scene
    const request = pull(stage, client, { heartbeatMs: 500 })
    await client.connection.flush()
    await stage.sleep(100)
    await stage.strike("kill", consumer)
    await publishUntilStored(stage, client, "a")
    const old = textOf(await request.next(1_500))
    await stage.heal()
    return old
  }),

  script("an acknowledgement while the consumer's leader dies", "state rolls back", async (scene) => {
    const { client, consumer, stage } = scene
    await publish(stage, client)
    const job = await pull(stage, client).next(2_000)
    if (job === undefined) return "nothing is delivered"
    await stage.strike("kill", consumer, () => job.settle("+ACK"))
    await publishUntilStored(stage, client, "b")
    const manager = await managerOf(client)
    await patiently(stage, () => manager.consumers.info(stage.name, "jobs"))
    const seen = await drain(stage, client, 2 * ackWaitMs)
    await stage.heal()
    return seen
  }),

  script("a job of a consumer whose leader is frozen", "a stale leader delivers again", async (scene) => {
    const { client, consumer, stage } = scene
    await publish(stage, client, "a")
    const job = await pull(stage, client).next(2_000)
    if (job === undefined) return "nothing is delivered"
    const old = pull(stage, client, { expiresMs: 60_000 })
    await client.connection.flush()
    await stage.sleep(100)
    await stage.strike("freeze", consumer)
    await publishUntilStored(stage, client, "b")
    const manager = await managerOf(client)
    await patiently(stage, () => manager.consumers.info(stage.name, "jobs"))
    job.settle("+ACK")
    const seen = await drain(stage, client, 2 * ackWaitMs)
    await stage.heal()
    return `${seen}; the old request gets ${textOf(await old.next(1_500))}`
  }),

  script("two restarts one after the other, in memory", "the whole log gone", async ({ client, stage, stream }) => {
    for (let at = 0; at < 5; at++) await publish(stage, client)
    const other = (stream + 1) % clusterSize
    await stage.strike("kill", stream)
    await stage.heal()
    await stage.strike("kill", other)
    await stage.heal()
    const after = patiently(stage, async () => {
      const outcome = await publish(stage, client)
      if (!outcome.startsWith("stored")) throw new Error(outcome)
      return outcome === "stored 6" ? "kept" : "sequences restart"
    }, 30_000)
    return after.catch(() => "no leader")
  }, { storage: StorageType.Memory })
]
