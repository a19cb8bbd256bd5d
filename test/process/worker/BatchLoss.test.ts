/** A batch whose holders and workers are killed while it runs. `BATCH_LINES` sets how many requests it has. */
import { assert, describe, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Kvm } from "@nats-io/kv"
import { connect } from "@nats-io/transport-node"
import { jobStream, newestOf, type QueueName } from "../../../shared/bus/protocol/Subjects.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilJobs } from "../../fixture/nats/JobStream.ts"
import { expireClaims, redeliver } from "../../fixture/nats/LostWorkers.ts"
import type { NatsAddress } from "../../fixture/nats/NatsServer.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"

const count = Number(process.env["BATCH_LINES"] ?? 200)
const slots = 8

/** How often a process of the service has claimed the batch. */
const claimsOf = async (nats: NatsAddress, id: string): Promise<number> => {
  const connection = await connect({ servers: nats.url })
  try {
    const bucket = await new Kvm(connection).open(buckets.batches.name)
    for await (const key of await bucket.keys(`*.${id}`)) {
      return (await bucket.get(key))?.json<{ readonly claims: number }>().claims ?? 0
    }
    return 0
  } finally {
    await connection.close()
  }
}

/** The worker's write that says that it is about to call a provider for a line. */
const isBeginning = (command: string): boolean => /PUB \$KV\.BATCH_LINES\.[^]*"kind":"begun"/.test(command)

/** The worker's write that says that a line can still be performed by another. */
const isTaking = (command: string): boolean => /PUB \$KV\.BATCH_LINES\.[^]*"kind":"taken"/.test(command)

/** The holder's first request for records of the log. */
const isRead = (command: string): boolean => /PUB \$JS\.API\.CONSUMER\.MSG\.NEXT\.KV_BATCH_LINES\./.test(command)

/** The holder's write that closes the log: all lines have ended. */
const isClosing = (command: string): boolean => /PUB \$KV\.BATCH_LINES\.\S+\.closed /.test(command)

/** Puts a copy of each job of a queue into it, as a holder does whose predecessor has submitted them long ago. */
const copyJobs = async (nats: NatsAddress, queue: QueueName) => {
  const connection = await connect({ servers: nats.url })
  try {
    const manager = await jetstreamManager(connection)
    const stream = jobStream(queue, newestOf(queue))
    const { state: { first_seq, last_seq } } = await manager.streams.info(stream)
    for (let seq = first_seq; seq <= last_seq; seq++) {
      const job = await manager.streams.getMessage(stream, { seq })
      if (job !== null) await jetstream(connection).publish(job.subject, job.data)
    }
  } finally {
    await connection.close()
  }
}

const timeouts =
  /^gateway_provider_attempts_total\{(?=[^}]*outcome="ProviderTimeout")[^}]*provider="impatient"[^}]*\} [1-9]/m

describe("a batch", () => {
  it.live("does not fail if its holders are killed again and again, before they come on", () =>
    Gateway.runHere({ wired: true, environment: { WORKER_TASK_SLOTS: "4" } }, async (gateway) => {
      const { nats, provider } = gateway
      const client = new BatchClient(gateway)
      provider.behave({ kind: "silent" })
      let holder = await gateway.startWorker({}, "batches")
      const { id } = await client.create("paid-chat", 4)
      for (let losses = 0; losses < 3; losses++) {
        await eventually(() => claimsOf(nats, id), (claims) => claims > losses)
        holder.kill()
        await expireClaims(nats, "batches")
        holder = await gateway.startWorker({}, "batches")
      }
      await provider.until(() => provider.open === 4)
      provider.release()
      const batch = await client.ended(id)
      assert.deepInclude(batch, { status: "completed", request_counts: { total: 4, completed: 4, failed: 0 } })
    }))

  it.live("has its line performed by another worker if the provider has declined the call and the line's worker is lost", () =>
    Gateway.runHere({ workers: 0, wired: true, services: ["batches"] }, async (gateway) => {
      const { nats, provider } = gateway
      const client = new BatchClient(gateway)
      provider.behaveOnce({ kind: "status", status: 429, retryAfterMs: 60_000 })
      const first = await gateway.startWorker()
      const waits = first.holdAt((command) => isTaking(command) ? "after" : undefined)
      const { id } = await client.create("paid-chat", 1)
      await waits
      first.kill()
      await redeliver(nats, "chat-tasks")
      await gateway.startWorker()
      const batch = await client.ended(id)
      assert.deepInclude(batch.request_counts, { completed: 1, failed: 0 })
      assert.strictEqual(provider.requests.length, 2)
    }))

  it.live("keeps what it has paid for if its file is deleted and then its holder is killed", () =>
    Gateway.runHere({ wired: true, environment: { WORKER_TASK_SLOTS: "4" } }, async (gateway) => {
      const { key, nats, provider, url } = gateway
      const client = new BatchClient(gateway)
      for (let answers = 0; answers < 3; answers++) provider.behaveOnce({ kind: "answer" })
      provider.behave({ kind: "silent" })
      const holder = await gateway.startWorker({}, "batches")
      const { id, input_file_id: file } = await client.create("paid-chat", 40)
      await client.untilDone(id, 3)
      await provider.until(() => provider.open === 4)
      const deleted = await fetch(`${url}/v1/files/${file}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${key}` }
      })
      assert.strictEqual(deleted.status, 200)
      // lines change while the next holder reads the log, so that the server's count of what it will send is wrong
      const next = await gateway.startWorker({}, "batches")
      const reads = next.holdAt((command) => isRead(command) ? "before" : undefined)
      holder.kill()
      await expireClaims(nats, "batches")
      await reads
      provider.behave({ kind: "answer" })
      provider.release()
      await provider.until(() => provider.requests.length > 7 && provider.open === 0)
      next.mend()
      const batch = await client.ended(id)
      assert.strictEqual(batch.status, "failed")
      assert.strictEqual(batch.errors?.data[0]?.code, "file_not_found")
      const answers = await client.linesOf(batch.output_file_id)
      assert.lengthOf(answers, batch.request_counts.completed)
      assert.isAtLeast(answers.length, 7)
    }))

  it.live("whose lines have all ended is complete, even if it is cancelled after the loss of its holder", () =>
    Gateway.runHere({ wired: true }, async (gateway) => {
      const client = new BatchClient(gateway)
      const holder = await gateway.startWorker({}, "batches")
      const held = holder.holdAt((command) => isClosing(command) ? "before" : undefined)
      const { id } = await client.create("paid-chat", 4)
      await held
      holder.kill()
      await client.cancel(id)
      await expireClaims(gateway.nats, "batches")
      await gateway.startWorker({}, "batches")
      const batch = await client.ended(id)
      assert.deepInclude(batch, { status: "completed", request_counts: { total: 4, completed: 4, failed: 0 } })
    }))

  it.live("leaves its line to the worker that has taken it if there is a copy of the line's job", () =>
    Gateway.runHere({ workers: 2, services: ["batches"] }, async (gateway) => {
      const { nats, provider } = gateway
      const client = new BatchClient(gateway)
      provider.behave({ kind: "silent" })
      const { id } = await client.create("free-chat", 1)
      await provider.until(() => provider.open === 1)
      await copyJobs(nats, "chat-tasks")
      // the copy is acknowledged
      await untilJobs(nats, ({ pending, stored }) => stored === 1 && pending === 0, "chat-tasks")
      provider.release()
      const batch = await client.ended(id)
      assert.deepInclude(batch.request_counts, { completed: 1, failed: 0 })
      assert.strictEqual(provider.requests.length, 1)
    }))
})

// both wait for times of the product: concurrently, they wait once
describe.concurrent("a batch", () => {
  it.live("ends if a worker takes over a line, finds its first worker alive after all, and then that one is lost", () =>
    Gateway.runHere({ workers: 0, wired: true, services: ["batches"] }, async (gateway) => {
      const { provider } = gateway
      const client = new BatchClient(gateway)
      provider.behave({ kind: "silent" })
      const holdNext = async () => {
        const worker = await gateway.startWorker()
        return { worker, held: worker.holdAt((command) => isBeginning(command) ? "before" : undefined) }
      }
      const first = await holdNext()
      const { id } = await client.create("paid-chat", 1)
      await first.held
      // it is silent, so that JetStream delivers its job again
      const second = await holdNext()
      await second.held
      first.worker.mend()
      await provider.until(() => provider.open === 1)
      second.worker.mend()
      first.worker.kill()
      const batch = await client.ended(id)
      assert.deepInclude(batch.request_counts, { completed: 0, failed: 1 })
      assert.strictEqual((await client.results(batch)).errors[0]?.error?.code, "worker_lost")
      assert.strictEqual(provider.requests.length, 1)
    }))

  it.live("ends if a worker does not learn in time that its mark on a line was stored", () =>
    Gateway.runHere({
      workers: 0,
      wired: true,
      services: ["batches"],
      providers: (baseUrl) =>
        `  impatient: { protocol: openai, baseUrl: "${baseUrl}", retry: { times: 0 }, timeouts: { firstByteMs: 200 } }`,
      models: "  impatient-chat: { workload: chat, targets: [{ provider: impatient }] }"
    }, async (gateway) => {
      const client = new BatchClient(gateway)
      const worker = await gateway.startWorker()
      const held = worker.holdAt((command) => isBeginning(command) ? "after" : undefined)
      const { id } = await client.create("impatient-chat", 1)
      await held
      await eventually(
        async () => (await fetch(`${worker.healthUrl}/metrics`)).text(),
        (text) => timeouts.test(text)
      )
      worker.mend()
      const batch = await client.ended(id)
      assert.deepInclude(batch.request_counts, { completed: 0, failed: 1 })
      assert.strictEqual(gateway.provider.requests.length, 0)
    }))
})

it.live(
  "a batch has one result for each request, and pays once for each, whoever is killed",
  () =>
    Gateway.run({ environment: { WORKER_TASK_SLOTS: String(slots) } }, async (gateway) => {
      const { nats, provider } = gateway
      const client = new BatchClient(gateway)
      const paced = { kind: "paced", chunks: 1, everyMs: 100 } as const
      provider.behave(paced)
      let holder = await gateway.startWorker({}, "batches")
      const { id } = await client.create("paid-chat", count)
      for (const share of [0.2, 0.4]) {
        await client.untilDone(id, share * count)
        await holder.kill()
        await expireClaims(nats, "batches")
        holder = await gateway.startWorker({}, "batches")
      }
      await client.untilDone(id, 0.6 * count)
      provider.behave({ kind: "silent" })
      await provider.until(() => provider.open === slots)
      await gateway.workers[0]?.kill()
      provider.behave(paced)
      await gateway.startWorker()
      const batch = await client.ended(id)
      assert.strictEqual(batch.status, "completed")
      const { answers, errors } = await client.results(batch)
      // those that the killed worker had begun
      assert.isAtMost(errors.length, slots)
      assert.isAtLeast(errors.length, 1)
      for (const { error } of errors) assert.strictEqual(error?.code, "worker_lost")

      const asked = provider.requests.map(({ body }) => /question \d+\./.exec(body.toString())?.[0])
      assert.lengthOf(asked, new Set(asked).size)
      const events = await eventually(
        async () => (await eventsIn(nats)).filter((event) => event.id.startsWith(id)),
        (found) => found.length >= count
      )
      assert.lengthOf(events, count)
      const successes = events.filter(({ outcome }) => outcome === "success")
      // the bill: an answer that was lost with the worker may have been paid, and is in usage as a failure
      assert.lengthOf(successes, answers.length)
      const tokens = answers.map(({ response }) => response?.body["usage"] as { readonly total_tokens: number })
      assert.strictEqual(
        successes.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0), 0),
        tokens.reduce((sum, { total_tokens }) => sum + total_tokens, 0)
      )
      assert.isAtMost(asked.length, events.length)
      assert.isAtLeast(asked.length, answers.length)
    })
)
