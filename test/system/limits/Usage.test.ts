/** Usage is counted for every answer of the provider, whatever dies between the answer and the counter. */
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect } from "effect"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import type { UsageRow } from "../../../shared/usage/UsageTable.ts"
import { chat, outcomeOf, startStream } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway, type GatewayOptions, plain, providerKey } from "../../fixture/gateway/Gateway.ts"
import type { ServiceHere } from "../../fixture/gateway/ServiceHere.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { storedEvents, total, usageProcess } from "../../fixture/nats/UsageEvents.ts"
import { smallVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

const options: GatewayOptions = {
  providers: (baseUrl) =>
    `  messages: { protocol: anthropic, baseUrl: "${new URL(baseUrl).origin}", apiKey: ${providerKey}, ${plain} }
  sdk:
    protocol: ai-sdk
    baseUrl: "${baseUrl}"
    apiKey: ${providerKey}
    options: { package: "@ai-sdk/openai-compatible", settings: { name: fake } }`,
  models: `
  priced-chat: { workload: chat, targets: [{ provider: paid }], price: { inputPerMillion: 2, outputPerMillion: 8, perRequest: 0.001 } }
  priced-message: { workload: chat, targets: [{ provider: messages }], price: { inputPerMillion: 2, outputPerMillion: 8 } }
  sdk-chat: { workload: chat, targets: [{ provider: sdk }] }
  metered-chat: { workload: chat, targets: [{ provider: paid }], price: { inputPerMillion: 2, outputPerMillion: 8 } }
  metered-video: { workload: video, targets: [{ provider: local }], price: { perSecond: 0.5 } }`
}

const version = { "anthropic-version": "2023-06-01" }

type UsageGateway = Gateway<NatsServer, ServiceHere>

/** Runs a test on a gateway with prices. `counted` reads its counters by model once they hold that many requests. */
const run = (
  test: (gateway: UsageGateway, counted: (requests: number) => Promise<ReadonlyArray<UsageRow>>) => Promise<void>,
  more: GatewayOptions = {}
) =>
  Effect.scoped(Effect.gen(function*() {
    const gateway = yield* Gateway.makeHere({ ...options, ...more })
    const counters = Context.get(yield* usageProcess(gateway.nats, UsageCounters.layer), UsageCounters)
    const now = yield* DateTime.now
    const from = DateTime.formatIsoDateUtc(now)
    // the test may go on after midnight
    const to = DateTime.formatIsoDateUtc(DateTime.add(now, { days: 1 }))
    const runPromise = Effect.runPromiseWith(yield* Effect.context<never>())
    const look = () =>
      runPromise(counters.query({ from, to, by: "model" })).then(
        (rows) => ({ rows, count: total(rows, ({ requests }) => requests) }),
        // some of these tests lose NATS
        (error: unknown) => ({ rows: [], count: -1, error: String(error) })
      )
    const counted = async (requests: number) => (await eventually(look, ({ count }) => count >= requests)).rows
    yield* Effect.promise(() => test(gateway, counted)).pipe(
      Effect.onError(() => Effect.sync(() => process.stderr.write(gateway.log)))
    )
  }))

/** The fake provider counts words: five per request, and as many per answer. */
const words = 5

/** A worker's messages after the provider's answer: the answer, its usage, and the acknowledgement. */
const steps = [/PUB r\.[^]*three four five/, /PUB usage\.chat/, /PUB \$JS\.ACK\.JOBS3?_CHAT\.[^]*\+ACK/]

describe("usage", () => {
  it.live("is the requests, tokens and cost, however a request ends", () =>
    run(async (gateway, counted) => {
      const stream = { stream: true, stream_options: { include_usage: true } }
      await outcomeOf(gateway.request(chat("priced-chat")))
      await outcomeOf(gateway.request(chat("priced-chat", stream)))
      await outcomeOf(gateway.request(chat("local-chat")))

      gateway.provider.behaveOnce({ kind: "status", status: 500 })
      await outcomeOf(gateway.request(chat("free-chat")))

      gateway.provider.behaveOnce({ kind: "hold", after: 2 })
      const hangingUp = new AbortController()
      await startStream(gateway.request(chat("free-chat", stream), { signal: hangingUp.signal }))
      hangingUp.abort()

      const [free, local, priced] = await counted(5)
      assert.deepInclude(priced, { model: "priced-chat", requests: 2, cancelled: 0, errors: {} })
      assert.deepInclude(priced?.usage, { inputTokens: 2 * words, outputTokens: 2 * words })
      assert.closeTo(priced?.costUsd ?? 0, 2 * (0.001 + words * 10 / 1_000_000), 1e-12)
      assert.strictEqual(priced?.duration.count, 2)
      assert.strictEqual(priced?.firstByte.count, 2)
      assert.deepInclude(free, {
        model: "free-chat",
        requests: 2,
        cancelled: 1,
        errors: { ProviderFailed: 1 },
        costUsd: 0
      })
      assert.deepInclude(local, { model: "local-chat", requests: 1, errors: {} })

      const [event] = (await gateway.admin("usage", "--by", "model,key", "--csv")).trim().split("\r\n").slice(1)
      // the client disconnected before the provider reported usage: an estimate counts
      assert.match(event ?? "", /^free-chat,key_\w+,2,1,1,0,[1-9]\d*,[1-9]\d*,/)
    }))

  it.live("is estimated, marked and paid if the provider reports none", () =>
    run(async (gateway, counted) => {
      // 23 bytes of text each way: 6 tokens
      const tokens = 6
      gateway.provider.say({ text: "six five four three two", usage: { input: 0, output: 0 } })
      const whole = await (await gateway.request(chat("priced-chat"))).json() as { readonly usage: object }
      const estimate = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens }
      assert.deepInclude(whole.usage, { ...estimate, estimated_tokens: 2 * tokens })
      await outcomeOf(gateway.request(chat("priced-chat", { stream: true })))
      gateway.provider.behaveOnce({ kind: "hold", after: 4 })
      const hangingUp = new AbortController()
      await startStream(gateway.request(chat("priced-chat", { stream: true }), { signal: hangingUp.signal }))
      hangingUp.abort()

      const [row] = await counted(3)
      assert.deepInclude(row, { requests: 3, cancelled: 1, errors: {} })
      assert.strictEqual(row?.usage.inputTokens, 3 * tokens)
      const output = row?.usage.outputTokens ?? 0
      assert.isAtLeast(output, 2 * tokens)
      assert.strictEqual(row?.usage.estimatedTokens, 3 * tokens + output)
      // only answers that are whole cost the price of a request
      assert.isAtLeast(row?.costUsd ?? 0, 2 * 0.001 + (3 * tokens * 2 + output * 8) / 1_000_000 - 1e-12)

      gateway.provider.behaveOnce({ kind: "cut", after: 3 })
      await (await gateway.request(chat("priced-chat", { stream: true }))).text()
      const [failed] = await counted(4)
      assert.deepInclude(failed, { requests: 4, errors: { ProviderFailed: 1 }, costUsd: row?.costUsd ?? 0 })
    }))

  it.live("of a stream that was cancelled or cut is what the provider had reported so far", () =>
    run(async (gateway, counted) => {
      const stream = chat("priced-message", { stream: true, max_tokens: 100 })
      const hangingUp = new AbortController()
      gateway.provider.behaveOnce({ kind: "hold", after: 4 })
      const cancelled = await gateway.request(stream, {
        path: "/v1/messages",
        signal: hangingUp.signal,
        headers: version
      })
      await cancelled.body!.getReader().read()
      hangingUp.abort()
      await counted(1)
      gateway.provider.behaveOnce({ kind: "cut", after: 3 })
      await (await gateway.request(stream, { path: "/v1/messages", headers: version })).text()

      const [row] = await counted(2)
      assert.deepInclude(row, { requests: 2, cancelled: 1, errors: { ProviderFailed: 1 } })
      assert.strictEqual(row?.usage.inputTokens, 2 * words)
      assert.closeTo(row?.costUsd ?? 0, (2 * words * 2 + (row?.usage.outputTokens ?? 0) * 8) / 1_000_000, 1e-12)
      const [, usd] = /priced-message .* USD ([\d.]+)$/m.exec(await gateway.admin("usage")) ?? []
      assert.closeTo(Number(usd), row?.costUsd ?? 0, 1e-6)
      assert.isAbove(Number(usd), 0)
    }))

  it.live("of an AI SDK package is asked for, and estimated if the client disconnects before", () =>
    run(async (gateway, counted) => {
      await outcomeOf(gateway.request(chat("sdk-chat", { stream: true })))
      const [asked] = await counted(1)
      assert.deepInclude(asked?.usage, { inputTokens: words, outputTokens: words, estimatedTokens: 0 })

      gateway.provider.behaveOnce({ kind: "hold", after: 4 })
      const hangingUp = new AbortController()
      await startStream(gateway.request(chat("sdk-chat", { stream: true }), { signal: hangingUp.signal }))
      hangingUp.abort()
      const [row] = await counted(2)
      assert.deepInclude(row, { requests: 2, cancelled: 1 })
      assert.strictEqual(row?.usage.inputTokens, words + 6)
      assert.strictEqual(row?.usage.estimatedTokens, (row?.usage.outputTokens ?? 0) - words + 6)
    }))

  it.live("is in the metrics by its cost, for answers and videos", () =>
    run(async (gateway, counted) => {
      await outcomeOf(gateway.request(chat("metered-chat")))
      const videos = new VideoClient(gateway)
      await videos.untilEnded(await videos.create({ ...smallVideo, model: "metered-video", n: 2 }))
      const rows = await counted(3)
      // the services of this process share their metrics, and only this test uses these models
      const costs = await eventually(
        async () => {
          const text = await (await fetch(`${gateway.ingress.healthUrl}/metrics`)).text()
          const found = text.matchAll(/^gateway_cost_usd_total\{model="(metered-\w+)"\} (.+)$/gm)
          return [...found].map(([, model, usd]) => ({ model, costUsd: Number(usd) }))
        },
        (costs) => costs.length === rows.length
      )
      assert.sameDeepMembers(costs, rows.map(({ costUsd, model }) => ({ model, costUsd })))
      assert.deepInclude(costs, { model: "metered-video", costUsd: 1 })
    }, { services: ["video"] }))

  it.live("waits in the workers while NATS is away, and a worker waits for it before it exits", () =>
    run(async (gateway, counted) => {
      await outcomeOf(gateway.request(chat("priced-chat")))
      gateway.provider.behave({ kind: "hold", after: 2 })
      const stream = { stream: true, stream_options: { include_usage: true } }
      const streams = await Promise.all(
        Array.from({ length: 3 }, () => startStream(gateway.request(chat("priced-chat", stream))))
      )
      await gateway.nats.kill()
      gateway.provider.release()
      await gateway.provider.until(() => gateway.provider.open === 0)
      await gateway.nats.restart()
      for (const { outcome } of streams) await outcome()
      await gateway.workers[0]!.terminate()
      const [row] = await counted(4)
      assert.deepInclude(row, { model: "priced-chat", requests: 4, errors: {} })
      assert.deepInclude(row?.usage, { inputTokens: 4 * words, outputTokens: 4 * words })
    }))
})

// each of these waits for six seconds, until NATS redelivers the jobs of its dead workers
describe.concurrent("usage whose worker dies", () => {
  it.live("is counted for every answer, however soon the worker is killed", () =>
    run(async (gateway, counted) => {
      const rounds = 6
      const atOnce = 4
      for (let round = 0; round < rounds; round++) {
        const model = round % 2 === 0 ? "free-chat" : "priced-chat"
        const outcomes = await Promise.all(
          Array.from({ length: atOnce }, () => outcomeOf(gateway.request(chat(model))))
        )
        await gateway.workers.at(-1)!.kill()
        assert.isTrue(outcomes.every(({ kind }) => kind === "whole"))
        await gateway.startWorker()
      }
      const jobs = rounds * atOnce
      const rows = await counted(jobs)
      assert.strictEqual(total(rows, ({ requests }) => requests), jobs)
      assert.strictEqual(total(rows, ({ usage }) => usage.inputTokens), jobs * words)
      assert.strictEqual(total(rows, ({ usage }) => usage.outputTokens), jobs * words)
      // nor by the workers that receive the unacknowledged jobs; a job whose worker seemed dead before its answer was called for twice
      await untilNoJobs(gateway.nats)
      assert.isAtMost(await storedEvents(gateway.nats), gateway.provider.requests.length)
    }, { wired: true }))

  /** Starts a worker for each step. */
  const startWorkers = (gateway: UsageGateway) =>
    Promise.all(steps.map(() => gateway.startWorker({ WORKER_SLOTS: "1" })))

  /** Asks once per step, and stops a worker at each. */
  const stopAtEach = async (gateway: UsageGateway, model: string) => {
    const workers = await startWorkers(gateway)
    const stopped = steps.map((step, index) =>
      workers[index]!.holdAt((command) => step.test(command) ? "before" : undefined)
    )
    const outcomes = steps.map(() => outcomeOf(gateway.request(chat(model))))
    await Promise.all(stopped)
    return { workers, outcomes }
  }

  it.live("is counted once, if NATS dies at any step between the provider's answer and the counter", () =>
    run(async (gateway, counted) => {
      const { outcomes, workers } = await stopAtEach(gateway, "priced-chat")
      await gateway.nats.kill()
      for (const worker of workers) worker.mend()
      await gateway.nats.restart()
      await Promise.all(outcomes)
      await untilNoJobs(gateway.nats)
      const served = steps.length
      assert.strictEqual(gateway.provider.requests.length, served)
      const [known] = await counted(served)
      assert.deepInclude(known, { requests: served, errors: {} })
      assert.deepInclude(known?.usage, { inputTokens: served * words, outputTokens: served * words })
      assert.strictEqual(await storedEvents(gateway.nats), served)
    }, { wired: true, workers: 0 }))

  const models = [
    // its calls are not repeated: two of them have no known usage
    { model: "priced-chat", lost: 2 },
    // another worker repeats the call that brought nothing
    { model: "free-chat", lost: 1 }
  ]
  for (const { lost, model } of models) {
    it.live(`is counted once, if workers die at any step between the answer to ${model} and the counter`, () =>
      run(async (gateway, counted) => {
        const { outcomes, workers } = await stopAtEach(gateway, model)
        await Promise.all(workers.map((worker) => worker.kill()))
        await gateway.startWorker()
        await Promise.all(outcomes)
        await untilNoJobs(gateway.nats)
        const [row] = await counted(steps.length)
        assert.deepInclude(row, { model, requests: steps.length, errors: { WorkerLost: lost } })
        assert.strictEqual(row?.usage.outputTokens, (steps.length - lost) * words)
        assert.strictEqual(await storedEvents(gateway.nats), steps.length)
      }, { wired: true, workers: 0 }))
  }

  it.live("during a paid call is counted as far as known, and that of a free call once", () =>
    run(async (gateway, counted) => {
      gateway.provider.behaveOnce({ kind: "silent" }, { kind: "silent" })
      const paid = outcomeOf(gateway.request(chat("priced-chat")))
      const free = outcomeOf(gateway.request(chat("free-chat")))
      await gateway.provider.until(() => gateway.provider.requests.length === 2)
      await gateway.startWorker()
      await gateway.workers[0]!.kill()
      assert.deepInclude(await paid, { kind: "refused", code: "worker_lost" })
      // another worker repeats the free call, and only that one is counted
      assert.deepInclude(await free, { kind: "whole" })
      await untilNoJobs(gateway.nats)
      const [repeated, lost] = await counted(2)
      assert.deepInclude(repeated, { model: "free-chat", requests: 1, errors: {} })
      assert.deepInclude(lost, { model: "priced-chat", requests: 1, errors: { WorkerLost: 1 } })
      assert.strictEqual(await storedEvents(gateway.nats), 2)
    }, { wired: true }))
})
