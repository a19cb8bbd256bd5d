/**
 * JetStream sends its answers to any reply subject, with rights of its own. With the real credentials of each worker this
 * is tried on everything in the control account: nothing there changes. What it can do in the workers' own account is
 * shown beside it, so that each of the tricks is known to be one.
 */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { headers, type NatsConnection, nkeyAuthenticator } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { type Account, buckets, bucketStream, events } from "../../../shared/nats/Storage.ts"
import { jobStream, jobSubject, pullSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { type Workload, workloads } from "../../../shared/contract/Operation.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

let nats: SecureNats
/** The administrator in both accounts. */
const admin = {} as Record<Account, NatsConnection>

const connectAs = (service: NatsService, account: Account = "data") =>
  connect({
    servers: nats.server.url,
    tls: { caFile: join(nats.folder, "ca.pem") },
    authenticator: nkeyAuthenticator(new TextEncoder().encode(nats.seedOf(service, account))),
    inboxPrefix: `_INBOX.${service}`
  })

/** Everything in the control account, with a subject of each that holds a record. */
const kept = [
  ...Object.values(buckets).filter(({ account }) => account === "control").map((bucket) => ({
    stream: bucketStream(bucket),
    subject: `$KV.${bucket.name}.victim`
  })),
  { stream: events.keyChanges.name, subject: "keychanges.victim" }
]

/** What the client of a job can have a worker write, where a reply subject is one of a bucket: a key of its own. */
const forged = JSON.stringify({ id: "key_forged", name: "forged", createdAt: "2026-01-01T00:00:00Z" })

const usage = (workload: Workload) => events.usage.subjects.replace(">", workload)

interface Trick {
  readonly name: string
  readonly play: (worker: NatsConnection, workload: Workload, reply: string) => void
}

/** A worker's ways to have the server publish to a subject. */
const tricks: ReadonlyArray<Trick> = [
  {
    name: "the state of a stream",
    play: (worker, _, reply) => worker.publish(`$JS.API.STREAM.INFO.${events.usage.name}`, "{}", { reply })
  },
  {
    name: "a request that is an error",
    play: (worker, _, reply) => worker.publish(`$JS.API.STREAM.INFO.${events.usage.name}`, "nonsense", { reply })
  },
  {
    name: "a stored message",
    play: (worker, _, reply) =>
      worker.publish(`$JS.API.STREAM.MSG.GET.${bucketStream(buckets.providerLimits)}`, `{"seq":1}`, { reply })
  },
  {
    name: "the state of a consumer",
    play: (worker, workload, reply) =>
      worker.publish(`$JS.API.CONSUMER.INFO.${jobStream(workload)}.default`, "", { reply })
  },
  {
    name: "a job, with what its client has written",
    play: (worker, workload, reply) =>
      worker.publish(pullSubject(workload, "default"), `{"batch":1,"no_wait":true}`, { reply })
  },
  {
    name: "a pull request that expires",
    play: (worker, workload, reply) =>
      worker.publish(pullSubject(workload, "default"), `{"batch":1,"expires":1000000}`, { reply })
  },
  {
    name: "that an event was stored",
    play: (worker, workload, reply) => worker.publish(usage(workload), "{}", { reply })
  },
  {
    name: "that a record was not stored",
    play: (worker, _, reply) => {
      const expecting = headers()
      expecting.set("Nats-Expected-Last-Sequence", "1000000")
      worker.publish(`$KV.${buckets.providerLimits.name}.any`, "{}", { reply, headers: expecting })
    }
  },
  {
    name: "the next job, for an acknowledgement",
    play: (worker, workload, reply) =>
      worker.publish(`$JS.ACK.${jobStream(workload)}.default.1.1.1.1.1`, "+NXT", { reply })
  }
]

/** These the server refuses, or answers to none but the asker. */
const harmless: ReadonlyArray<Trick> = [
  {
    name: "that nobody listens",
    play: (worker, workload, reply) => worker.publish(`r.${workload}.nobody.job.1`, "", { reply })
  },
  {
    name: "a record directly",
    play: (worker, _, reply) =>
      worker.publish(`$JS.API.DIRECT.GET.${bucketStream(buckets.providerLimits)}.any`, "", { reply })
  },
  {
    name: "a record of keys",
    play: (worker, _, reply) => worker.publish("$JS.API.STREAM.INFO.KV_API_KEYS", "", { reply })
  },
  {
    name: "a consumer that delivers there",
    play: (worker, _, reply) =>
      worker.publish(
        `$JS.API.CONSUMER.CREATE.${events.usage.name}`,
        JSON.stringify({ stream_name: events.usage.name, config: { deliver_subject: reply, ack_policy: "none" } })
      )
  },
  { name: "a record itself", play: (worker, _, reply) => worker.publish(reply, forged) }
]

/** As many jobs as tricks are played that take one. */
const submitJobs = async (workload: Workload, count: number) => {
  const ingress = await connectAs("ingress")
  for (let index = 0; index < count; index++) ingress.publish(jobSubject(workload, "default"), forged)
  await ingress.flush()
  await ingress.close()
}

/** The place of the last message, and how many there are. */
const stateOf = async (account: Account, stream: string) => {
  const manager = await jetstreamManager(admin[account], { checkAPI: false })
  const { state: { last_seq, messages } } = await manager.streams.info(stream)
  return { last_seq, messages }
}

beforeAll(async () => {
  nats = await SecureNats.start()
  await nats.provision()
  for (const account of ["data", "control"] as const) admin[account] = await connectAs("admin", account)
  // those who write there
  for (const service of ["ingress", "console"] as const) {
    const writer = await connectAs(service, "control")
    for (const { subject } of kept) writer.publish(subject, "a record")
    await writer.flush()
    await writer.close()
  }
}, 60_000)
afterAll(async () => {
  await Promise.all(Object.values(admin).map((connection) => connection.close()))
  await nats?.remove()
})

describe.each(workloads)("a worker of %s", { timeout: 30_000 }, (workload) => {
  it("changes nothing in the control account by any reply subject", async () => {
    const before = await Promise.all(kept.map(({ stream }) => stateOf("control", stream)))
    // each of them has a record, or nothing would be tried
    assert.deepStrictEqual(before.filter(({ messages }) => messages === 0), [])
    const targets = kept.flatMap(({ subject }) => [subject, subject.replace("victim", "forged")])
    await submitJobs(workload, 3 * targets.length)
    const worker = await connectAs(workload)
    for (const reply of targets) {
      for (const { play } of [...tricks, ...harmless]) play(worker, workload, reply)
    }
    await worker.flush()
    // behind all of these comes one that does reach what it is aimed at
    const reachable = bucketStream(buckets.videoTasks)
    const { last_seq } = await stateOf("data", reachable)
    for (const { play } of tricks) play(worker, workload, `$KV.${buckets.videoTasks.name}.last`)
    await eventually(() => stateOf("data", reachable), (state) => state.last_seq >= last_seq + tricks.length, 5_000)
    await worker.close()
    const after = await Promise.all(kept.map(({ stream }) => stateOf("control", stream)))
    assert.deepStrictEqual(after, before)
  })
})

describe("a worker of chat, in its own account,", { timeout: 30_000 }, () => {
  // what NATS cannot prevent, see the page about it; and each trick is one
  it.each(tricks)("overwrites what it has no right to: $name", async ({ play }) => {
    const stream = bucketStream(buckets.videoTasks)
    const { last_seq } = await stateOf("data", stream)
    await submitJobs("chat", 2)
    const worker = await connectAs("chat")
    play(worker, "chat", `$KV.${buckets.videoTasks.name}.victim`)
    await worker.flush()
    await eventually(() => stateOf("data", stream), (state) => state.last_seq > last_seq, 5_000)
    await worker.close()
  })

  it.each(harmless)("is refused: $name", async ({ play }) => {
    const stream = bucketStream(buckets.videoTasks)
    const before = await stateOf("data", stream)
    const worker = await connectAs("chat")
    play(worker, "chat", `$KV.${buckets.videoTasks.name}.victim`)
    await worker.flush()
    assert.deepStrictEqual(await stateOf("data", stream), before)
    await worker.close()
  })
})
