/** Scripts about buckets: compare-and-set, deletion, age, watches, and reads at a leader that does not know that it no longer leads. */
import { JetStreamApiError } from "@nats-io/jetstream"
import { type KV, Kvm, type KvOptions } from "@nats-io/kv"
import { failureOf, leaderOf, patiently, prepared } from "./Actions.ts"
import { type Client, clusterSize, type Script, type Stage } from "./Script.ts"

/** The bucket of a run, as the gateway creates its own. */
const bucketOf = (stage: Stage, { connection }: Client, options: Partial<KvOptions> = {}): Promise<KV> =>
  patiently(stage, () => new Kvm(connection).create(stage.name, { history: 1, allow_direct: false, ...options }))

const script = (
  name: string,
  shows: string,
  run: (bucket: KV, stage: Stage, client: Client) => Promise<string>,
  options: Partial<KvOptions> = {}
): Script =>
  prepared({ name, shows, isClustered: false }, async (stage) => {
    const client = await stage.connect()
    return [await bucketOf(stage, client, options), stage, client]
  }, run)

/** A revision, or the code of the server's refusal. */
const written = (answer: Promise<number>): Promise<string> =>
  answer.then(String, (error) => error instanceof JetStreamApiError ? `refused with ${error.code}` : failureOf(error))

const read = async (bucket: KV, key: string): Promise<string> => {
  const entry = await bucket.get(key)
  return entry === null ? "none" : entry.operation === "PUT" ? entry.string() : entry.operation
}

/** Starts a watch, and returns the keys that it has seen so far, with their values. */
const watch = async (bucket: KV): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  const entries = await bucket.watch()
  void (async () => {
    for await (const entry of entries) seen.push(`${entry.key}${entry.string()}`)
  })()
  return seen
}

/** Repeats a write until it is confirmed. */
const writeFirmly = (stage: Stage, bucket: KV, key: string, value: string): Promise<number> =>
  patiently(stage, () => bucket.put(key, value))

interface Scene {
  readonly stage: Stage
  readonly leader: number
  /** The buckets of a client at the leader, and of one at another server. */
  readonly atLeader: KV
  readonly elsewhere: KV
}

/** A script with a bucket of three replicas that has the key `a` with the value `1`. */
const clustered = (name: string, shows: string, run: (scene: Scene) => Promise<string>): Script =>
  prepared({ name, shows, isClustered: true }, async (stage) => {
    const first = await stage.connect(0)
    await writeFirmly(stage, await bucketOf(stage, first, { replicas: clusterSize }), "a", "1")
    const leader = await leaderOf(stage, first, "stream", `KV_${stage.name}`)
    const at = async (server: number) => new Kvm((await stage.connect(server)).connection).open(stage.name)
    return [{ stage, leader, atLeader: await at(leader), elsewhere: await at((leader + 1) % clusterSize) }]
  }, run)

export const keyValueScripts: ReadonlyArray<Script> = [
  script(
    "a key that is created twice",
    "compare-and-set",
    async (bucket) =>
      `${await written(bucket.create("a", "1"))}, ${await written(bucket.create("a", "2"))}: ${await read(bucket, "a")}`
  ),

  script("a key that is updated twice from one revision", "compare-and-set", async (bucket) => {
    const revision = await bucket.put("a", "1")
    const updates = [bucket.update("a", "2", revision), bucket.update("a", "3", revision)]
    const [first, second] = await Promise.all(updates.map(written))
    return `${first}, ${second}: ${await read(bucket, "a")}`
  }),

  script("a key that is deleted and created", "a deletion is a revision", async (bucket) => {
    await bucket.put("a", "1")
    await bucket.delete("a")
    return `${await read(bucket, "a")}, ${await written(bucket.create("a", "2"))}: ${await read(bucket, "a")}`
  }),

  script("a key that is purged", "roll-up", async (bucket) => {
    for (const value of ["1", "2"]) await bucket.put("a", value)
    await bucket.purge("a")
    const { values } = await bucket.status()
    return `${await read(bucket, "a")}, ${values} stored`
  }),

  script("a key that is too old", "age", async (bucket, stage) => {
    await bucket.put("a", "1")
    await stage.sleep(1_500)
    return `${await read(bucket, "a")}, ${await written(bucket.create("a", "2"))}`
  }, { ttl: 500 }),

  script("a watch that begins after three changes", "the last change of each key", async (bucket, stage) => {
    for (const [key, value] of [["a", "1"], ["b", "1"], ["a", "2"]] as const) await bucket.put(key, value)
    const seen = await watch(bucket)
    await stage.sleep(300)
    await bucket.put("b", "2")
    await stage.sleep(300)
    return seen.join(", ")
  }),

  script("a watch whose server restarts", "its consumer goes on", async (
    bucket,
    stage
  ) => {
    await bucket.put("a", "1")
    const seen = await watch(bucket)
    await stage.sleep(300)
    await stage.strike("kill", 0)
    await stage.heal()
    await writeFirmly(stage, bucket, "a", "2")
    await stage.rest(25_000)
    return seen.join(", ")
  }),

  clustered("a key that another server reads at once", "reads at the leader", async ({ atLeader, elsewhere }) => {
    await atLeader.put("a", "2")
    return read(elsewhere, "a")
  }),

  clustered("a key that a thawed leader reads", "a stale read", async ({ atLeader, elsewhere, leader, stage }) => {
    await stage.strike("freeze", leader)
    await writeFirmly(stage, elsewhere, "a", "2")
    const [before] = await Promise.all([
      read(atLeader, "a").catch(failureOf),
      stage.sleep(100).then(() => stage.heal())
    ])
    await stage.sleep(2_000)
    return `${before}, then ${await patiently(stage, () => read(atLeader, "a"))}`
  }),

  clustered("a watch while the bucket's leader dies", "no change is lost", async ({ elsewhere, leader, stage }) => {
    const seen = await watch(elsewhere)
    await stage.sleep(300)
    await stage.strike("kill", leader)
    await writeFirmly(stage, elsewhere, "a", "2")
    await stage.rest(20_000)
    await stage.heal()
    return [...new Set(seen)].join(", ")
  })
]
