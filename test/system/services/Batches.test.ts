/** Batches whose time is over, their limits, and whose they are. */
import { assert, describe, it } from "@effect/vitest"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"

const shared = sharedGateway({
  services: ["batches"],
  environment: { WORKER_TASK_SLOTS: "16" },
  models: "  cheap-chat: { workload: chat, targets: [{ provider: paid }], price: { perRequest: 0.5, batch: 0.5 } }"
})

const clientOf = (key: string) => new BatchClient({ url: shared().url, key })

describe("a batch", () => {
  it("expires, and keeps what is finished", async () => {
    const { url } = await shared().startIngress({ GATEWAY_BATCH_WINDOW_MS: "5000" })
    const { key } = await shared().createKeyWith({})
    const client = new BatchClient({ url, key })
    shared().provider.behave({ kind: "silent" })
    for (let count = 0; count < 5; count++) shared().provider.behaveOnce({ kind: "answer" })
    const { id } = await client.create("paid-chat", 40)
    const batch = await client.ended(id)
    shared().provider.behave({ kind: "answer" })
    assert.deepInclude(batch, { status: "expired", request_counts: { total: 40, completed: 5, failed: 35 } })
    const { answers, errors } = await client.results(batch)
    assert.lengthOf(answers, 5)
    assert.isTrue(errors.every(({ error }) => error?.code === "batch_expired"))
    await shared().provider.until(() => shared().provider.open === 0)
  })

  it("runs as many requests at once as its key allows, beside the key's own requests", async () => {
    const { key } = await shared().createKeyWith({ batchConcurrency: 2, concurrentRequests: 1 })
    const client = clientOf(key)
    const { provider } = shared()
    let most = 0
    provider.bill(() => most = Math.max(most, provider.open))
    provider.behave({ kind: "paced", chunks: 1, everyMs: 30 })
    provider.behaveOnce({ kind: "silent" }, { kind: "silent" })
    const [first, second] = await Promise.all([client.create("paid-chat", 6), client.create("paid-chat", 6)])
    await provider.until(() => provider.open === 2)
    provider.release()
    await Promise.all([client.ended(first.id), client.ended(second.id)])
    provider.behave({ kind: "answer" })
    provider.bill(() => {})
    assert.strictEqual(most, 2)
  })

  it("has the price of batches", async () => {
    const { id: tenant, key } = await shared().createKeyWith({})
    const client = clientOf(key)
    await client.ended((await client.create("cheap-chat", 2)).id)
    const events = await eventually(
      async () => (await eventsIn(shared().nats)).filter((event) => event.key === tenant),
      ({ length }) => length === 2
    )
    assert.deepStrictEqual(events.map(({ costUsd }) => costUsd), [0.25, 0.25])
  })

  it("fails the requests of a key that may not use their model", async () => {
    const { key } = await shared().createKeyWith({ allowedModels: ["free-chat"] })
    const client = clientOf(key)
    const batch = await client.ended((await client.create("paid-chat", 3)).id)
    assert.deepInclude(batch.request_counts, { completed: 0, failed: 3 })
    const { errors } = await client.results(batch)
    assert.isTrue(errors.every(({ response }) => response?.status_code === 403))
  })

  it("performs requests that may be repeated, too", async () => {
    const client = clientOf(shared().key)
    const batch = await client.ended((await client.create("free-chat", 60)).id)
    assert.deepInclude(batch, { status: "completed", request_counts: { total: 60, completed: 60, failed: 0 } })
    await client.results(batch)
  })

  it("belongs to its owner alone", async () => {
    const { id } = await clientOf(shared().key).create("paid-chat", 1)
    const { key } = await shared().createKeyWith({})
    for (const path of [`/v1/batches/${id}`, `/v1/messages/batches/ms${id.replace("batch", "gbatch")}`]) {
      const answer = await fetch(`${shared().url}${path}`, { headers: { authorization: `Bearer ${key}` } })
      assert.strictEqual(answer.status, 404, path)
    }
    await clientOf(shared().key).ended(id)
  })
})
