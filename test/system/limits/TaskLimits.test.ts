/** The limits of a key hold for the work of its tasks from their start, over all ingress processes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilJobs } from "../../fixture/nats/JobStream.ts"
import { eventsIn, usageProcess } from "../../fixture/nats/UsageEvents.ts"

const shared = sharedGateway({
  ingresses: 2,
  models: "  dear-chat: { workload: chat, targets: [{ provider: paid }], price: { perRequest: 0.4 } }"
})

interface Task {
  readonly id: string
  readonly status: string
  readonly error: { readonly code: string; readonly message: string } | null
}

const ask = (key: string, model: string, prefer = "", ingress = shared().ingress) =>
  shared().request(chat(model), { headers: { authorization: `Bearer ${key}`, prefer }, ingress })

const create = async (key: string, model = "paid-chat"): Promise<Task> => {
  const answer = await ask(key, model, "respond-async")
  assert.strictEqual(answer.status, 202)
  return await answer.json() as Task
}

const task = async (key: string, id: string, suffix = "", method = "GET"): Promise<Task> => {
  const headers = { authorization: `Bearer ${key}` }
  return await (await fetch(`${shared().url}/v1/tasks/${id}${suffix}`, { method, headers })).json() as Task
}

const isRunning = ({ status }: Task): boolean => status === "queued" || status === "in_progress"
const untilEnded = (key: string, { id }: Task) => eventually(() => task(key, id), (task) => !isRunning(task))

/** Waits until the provider has got another request. */
const untilCalled = (calls: number) => shared().provider.until(() => shared().provider.requests.length === calls)

/** A task whose provider is silent, and one that waits for it to end. */
const runningAndWaiting = async (key: string, model?: string) => {
  const { nats, provider } = shared()
  const calls = provider.requests.length
  provider.behaveOnce({ kind: "silent" })
  const running = await create(key, model)
  await untilCalled(calls + 1)
  const waiting = await create(key, model)
  // a worker has asked for the waiting one, and asked again
  await untilJobs(nats, ({ redelivered }) => redelivered > 0, "chat-tasks")
  assert.strictEqual(provider.requests.length, calls + 1)
  return { running, waiting, calls: calls + 1 }
}

describe("a key that allows one request at a time", () => {
  it("runs its tasks one after the other", async () => {
    const { key } = await shared().createKeyWith({ concurrentRequests: 1 })
    const { calls, running, waiting } = await runningAndWaiting(key)
    assert.strictEqual((await ask(key, "free-chat")).status, 429)
    shared().provider.behaveOnce({ kind: "silent" })
    shared().provider.release()
    assert.strictEqual((await untilEnded(key, running)).status, "completed")
    await untilCalled(calls + 1)
    shared().provider.release()
    assert.strictEqual((await untilEnded(key, waiting)).status, "completed")
    const later = await eventually(() => ask(key, "free-chat"), ({ status }) => status !== 429)
    assert.strictEqual(later.status, 200)
  })

  it("runs the next one when a task is cancelled, whose call is metered", async () => {
    const { id, key } = await shared().createKeyWith({ concurrentRequests: 1 })
    const { running, waiting } = await runningAndWaiting(key)
    await task(key, running.id, "/cancel", "POST")
    assert.strictEqual((await untilEnded(key, waiting)).status, "completed")
    const own = await eventually(
      async () => (await eventsIn(shared().nats)).filter((event) => event.key === id),
      ({ length }) => length === 2
    )
    assert.deepInclude(own.find((event) => event.id === running.id), {
      outcome: "cancelled",
      provider: "paid",
      attempts: 1
    })
    assert.deepInclude(own.find((event) => event.id === waiting.id), { outcome: "success" })
  })
})

describe("a waiting task fails", () => {
  it("if its key is revoked", async () => {
    const { id, key } = await shared().createKeyWith({ concurrentRequests: 1 })
    const [next = ""] = /sk-gw-\w+/.exec(await shared().admin("keys", "replace", id)) ?? []
    const { calls, running, waiting } = await runningAndWaiting(key)
    await shared().admin("keys", "revoke", id)
    for (const ingress of shared().ingresses) {
      await eventually(() => ask(key, "free-chat", "", ingress), ({ status }) => status === 401)
    }
    shared().provider.release()
    assert.strictEqual((await untilEnded(next, running)).status, "completed")
    const failed = await untilEnded(next, waiting)
    assert.strictEqual(failed.status, "failed")
    assert.strictEqual(failed.error?.code, "invalid_api_key")
    assert.strictEqual(shared().provider.requests.length, calls)
  })

  it("if its key's budget is spent", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      yield* usageProcess(shared().nats, UsageCounters.layer)
      yield* Effect.promise(async () => {
        const { id, key } = await shared().createKeyWith({ concurrentRequests: 1, monthlyBudgetUsd: 1 })
        assert.strictEqual((await ask(key, "dear-chat")).status, 200)
        const { calls, running, waiting } = await runningAndWaiting(key, "dear-chat")
        await shared().admin("keys", "edit", id, "--budget", "0.3")
        for (const ingress of shared().ingresses) {
          const codeOf = async () =>
            (await (await ask(key, "dear-chat", "", ingress)).json() as { readonly error?: Task["error"] }).error?.code
          await eventually(codeOf, (code) => code === "insufficient_quota")
        }
        shared().provider.release()
        assert.strictEqual((await untilEnded(key, running)).status, "completed")
        const failed = await untilEnded(key, waiting)
        assert.strictEqual(failed.error?.code, "insufficient_quota")
        assert.include(failed.error?.message, "0.3 USD")
        assert.strictEqual(shared().provider.requests.length, calls)
      })
    }))))
})

it("the creation of a task takes the key's request limit", async () => {
  const { key } = await shared().createKeyWith({ requestsPerMinute: 2 })
  const answers = [await ask(key, "free-chat", "respond-async"), await ask(key, "free-chat", "respond-async")]
  assert.deepStrictEqual(answers.map(({ status }) => status), [202, 202])
  const refused = await ask(key, "free-chat", "respond-async")
  assert.strictEqual(refused.status, 429)
  assert.include(await refused.text(), "requests per minute")
})
