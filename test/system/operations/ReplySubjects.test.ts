/**
 * JetStream sends its replies to any reply subject, with rights of its own. These tests try to abuse that with each worker's
 * real credentials. Nothing in the control account changes. Each trick is also shown to work in the workers' own account,
 * which proves that it is a real one.
 */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { headers, type NatsConnection } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { afterAll, beforeAll } from "vitest"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { type Account, buckets, bucketStream, events } from "../../../shared/nats/Storage.ts"
import { jobStream, jobSubject, pullSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { type Workload, workloads } from "../../../shared/contract/Operation.ts"
import { eventually, hungAfterMs } from "../../fixture/general/Eventually.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

let nats: SecureNats
/** The administrator in both accounts. */
const admin = {} as Record<Account, NatsConnection>

const connectAs = (service: NatsService, account: Account = "data") => connect(nats.optionsOf(service, account))

/** Everything in the control account: each stream with a subject that holds a record. */
const kept = [
  ...Object.values(buckets).filter(({ account }) => account === "control").map((bucket) => ({
    stream: bucketStream(bucket),
    subject: `$KV.${bucket.name}.victim`
  })),
  { stream: events.keyChanges.name, subject: "keychanges.victim" }
]

/** A key that a job's client could have a worker write if a bucket's subject were the reply subject. */
const forged = JSON.stringify({ id: "key_forged", name: "forged", createdAt: "2026-01-01T00:00:00Z" })

const usage = (workload: Workload) => events.usage.subjects.replace(">", workload)

interface Trick {
  readonly name: string
  readonly play: (worker: NatsConnection, workload: Workload, reply: string) => void
}

/** Ways for a worker to make the server publish to a subject. */
const tricks: ReadonlyArray<Trick> = [
  {
    name: "a request for a stream's state",
    play: (worker, _, reply) => worker.publish(`$JS.API.STREAM.INFO.${events.usage.name}`, "{}", { reply })
  },
  {
    name: "an invalid request",
    play: (worker, _, reply) => worker.publish(`$JS.API.STREAM.INFO.${events.usage.name}`, "nonsense", { reply })
  },
  {
    name: "a request for a stored message",
    play: (worker, _, reply) =>
      worker.publish(`$JS.API.STREAM.MSG.GET.${bucketStream(buckets.providerLimits)}`, `{"seq":1}`, { reply })
  },
  {
    name: "a request for a consumer's state",
    play: (worker, workload, reply) =>
      worker.publish(`$JS.API.CONSUMER.INFO.${jobStream(workload, 2)}.default`, "", { reply })
  },
  {
    name: "a pull request for a job, with its client's text",
    play: (worker, workload, reply) =>
      worker.publish(pullSubject(workload, "default", 2), `{"batch":1,"no_wait":true}`, { reply })
  },
  {
    // so late that a loaded server is in time: old ones may drop a request that has expired without a reply
    name: "a pull request that expires",
    play: (worker, workload, reply) =>
      worker.publish(pullSubject(workload, "default", 2), `{"batch":1,"expires":5000000000}`, { reply })
  },
  {
    name: "the confirmation of a stored event",
    play: (worker, workload, reply) => worker.publish(usage(workload), "{}", { reply })
  },
  {
    name: "the rejection of a record",
    play: (worker, _, reply) => {
      const expecting = headers()
      expecting.set("Nats-Expected-Last-Sequence", "1000000")
      worker.publish(`$KV.${buckets.providerLimits.name}.any`, "{}", { reply, headers: expecting })
    }
  },
  {
    name: "an acknowledgement that asks for the next job",
    play: (worker, workload, reply) =>
      worker.publish(`$JS.ACK.${jobStream(workload, 2)}.default.1.1.1.1.1`, "+NXT", { reply })
  }
]

/** The server rejects these, or replies to the sender only. */
const harmless: ReadonlyArray<Trick> = [
  {
    name: "a message without a subscriber",
    play: (worker, workload, reply) => worker.publish(`r.${workload}.nobody.job.1`, "", { reply })
  },
  {
    name: "a direct request for a record",
    play: (worker, _, reply) =>
      worker.publish(`$JS.API.DIRECT.GET.${bucketStream(buckets.providerLimits)}.any`, "", { reply })
  },
  {
    name: "a request for the state of the keys",
    play: (worker, _, reply) => worker.publish("$JS.API.STREAM.INFO.KV_API_KEYS", "", { reply })
  },
  {
    name: "a consumer that delivers to the subject",
    play: (worker, _, reply) =>
      worker.publish(
        `$JS.API.CONSUMER.CREATE.${events.usage.name}`,
        JSON.stringify({ stream_name: events.usage.name, config: { deliver_subject: reply, ack_policy: "none" } })
      )
  },
  { name: "a direct write", play: (worker, _, reply) => worker.publish(reply, forged) }
]

/** Submits a job for each trick that takes one, and waits until all are stored: a trick without a job would wait for ever. */
const submitJobs = async (workload: Workload, count: number) => {
  const ingress = await connectAs("ingress")
  const stream = jobStream(workload, 2)
  const { last_seq } = await stateOf("data", stream)
  for (let index = 0; index < count; index++) ingress.publish(jobSubject(workload, "default", 2), forged)
  await ingress.flush()
  await ingress.close()
  await eventually(() => stateOf("data", stream), (state) => state.last_seq >= last_seq + count)
}

/** The last sequence number, and the number of messages. */
const stateOf = async (account: Account, stream: string) => {
  const manager = await jetstreamManager(admin[account], { checkAPI: false })
  const { state: { last_seq, messages } } = await manager.streams.info(stream)
  return { last_seq, messages }
}

beforeAll(async () => {
  nats = await SecureNats.start()
  await nats.provision()
  for (const account of ["data", "control"] as const) admin[account] = await connectAs("admin", account)
  // the services that write there
  for (const service of ["ingress", "console"] as const) {
    const writer = await connectAs(service, "control")
    for (const { subject } of kept) writer.publish(subject, "a record")
    await writer.flush()
    await writer.close()
  }
})
afterAll(async () => {
  await Promise.all(Object.values(admin).map((connection) => connection.close()))
  await nats?.remove()
})

describe.each(workloads)("a worker of %s", (workload) => {
  it("changes nothing in the control account through any reply subject", async () => {
    const before = await Promise.all(kept.map(({ stream }) => stateOf("control", stream)))
    // each bucket has a record, or the test would prove nothing
    assert.deepStrictEqual(before.filter(({ messages }) => messages === 0), [])
    const targets = kept.flatMap(({ subject }) => [subject, subject.replace("victim", "forged")])
    // three tricks take a job for each target and for the last
    await submitJobs(workload, 3 * (targets.length + 2))
    const worker = await connectAs(workload)
    for (const reply of targets) {
      for (const { play } of [...tricks, ...harmless]) play(worker, workload, reply)
    }
    await worker.flush()
    // after all of these, one that does reach its target
    const reachable = bucketStream(buckets.videoTasks)
    const { last_seq } = await stateOf("data", reachable)
    for (const { play } of tricks) play(worker, workload, `$KV.${buckets.videoTasks.name}.last`)
    await eventually(() => stateOf("data", reachable), (state) => state.last_seq >= last_seq + tricks.length)
    await worker.close()
    const after = await Promise.all(kept.map(({ stream }) => stateOf("control", stream)))
    assert.deepStrictEqual(after, before)
  })
})

describe("a worker of chat, in its own account,", () => {
  // NATS cannot prevent these, as its page explains; each proves that its trick works
  it.each(tricks)("overwrites a record without the right to, by: $name", async ({ play }) => {
    const stream = bucketStream(buckets.videoTasks)
    const { last_seq } = await stateOf("data", stream)
    await submitJobs("chat", 2)
    const worker = await connectAs("chat")
    play(worker, "chat", `$KV.${buckets.videoTasks.name}.victim`)
    await worker.flush()
    await eventually(() => stateOf("data", stream), (state) => state.last_seq > last_seq)
    await worker.close()
  })

  it("lists the records of a bucket that it may read", async () => {
    const subject = `$KV.${buckets.responses.name}.owner.response.0`
    const ingress = await connectAs("ingress")
    await ingress.request(subject, "a record", { timeout: hungAfterMs })
    await ingress.close()
    const worker = await connectAs("chat")
    const { streams } = await jetstreamManager(worker, { checkAPI: false })
    const { state } = await streams.info(bucketStream(buckets.responses), { subjects_filter: ">" })
    await worker.close()
    assert.deepStrictEqual(state.subjects, { [subject]: 1 })
  })

  it.each(harmless)("changes nothing by: $name", async ({ play }) => {
    const stream = bucketStream(buckets.videoTasks)
    const before = await stateOf("data", stream)
    const worker = await connectAs("chat")
    play(worker, "chat", `$KV.${buckets.videoTasks.name}.victim`)
    await worker.flush()
    assert.deepStrictEqual(await stateOf("data", stream), before)
    await worker.close()
  })
})
