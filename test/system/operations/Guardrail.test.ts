/** A guardrail as official clients meet it, through the whole gateway, and what the gateway stores and says about it. */
import Anthropic, { APIError as AnthropicError } from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import OpenAI, { APIError } from "openai"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { forbidden, HookServer, reason } from "../../fixture/guardrail/HookServer.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"

const scope = Scope.makeUnsafe()
let hook: HookServer
beforeAll(async () => {
  hook = await Effect.runPromise(Scope.provide(HookServer.make, scope))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/**
 * Of pictures and videos only the prompts can be checked. `strict` and `lenient` are for a hook that does not answer; the others wait
 * for one in a busy test process.
 */
const shared = sharedGateway({
  settings: () =>
    `guardrail: { url: "${hook.url}", checks: [request], timeoutMs: 30000, window: { characters: 60, overlap: 10 } }`,
  models: [
    ["guarded", "checks: [request, answer]"],
    ["strict", "checks: [request, answer], timeoutMs: 200"],
    ["lenient", "checks: [request, answer], timeoutMs: 200, onUnreachable: open"]
  ].map(([name, guardrail]) =>
    `  ${name}: { workload: chat, guardrail: { ${guardrail} }, targets: [{ provider: paid }] }`
  ).join("\n"),
  services: ["video", "batches"]
})

const words = (count: number): string => Array.from({ length: count }, (_, index) => `word${index}`).join(" ")

const openai = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
const anthropic = () => new Anthropic({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })
const ask = (content: string) => [{ role: "user" as const, content }]

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(() => assert.fail("it was not refused"), (error: unknown) => error)

/** The usage event of the latest request of a model. */
const latest = async (model: string, before: number): Promise<UsageEvent> => {
  const events = await eventually(
    async () => (await eventsIn(shared().nats)).filter((event) => event.model === model),
    ({ length }) => length > before
  )
  const event = events.toSorted((a, b) => a.time - b.time).at(-1)
  assert.isDefined(event)
  return event
}
const countOf = async (model: string): Promise<number> =>
  (await eventsIn(shared().nats)).filter((event) => event.model === model).length

describe("a guardrail", () => {
  beforeEach(() => {
    hook.mood = "well"
    hook.onCheck = undefined
    hook.checks.length = 0
    shared().provider.say(words(60))
  })

  it("refuses a request in the client's dialect", async () => {
    const before = await countOf("guarded")
    const called = shared().provider.requests.length
    const error = await failureOf(openai().chat.completions.create({ model: "guarded", messages: ask(forbidden) }))
    assert.instanceOf(error, APIError)
    assert.deepInclude(error, { status: 400, code: "content_filter", type: "invalid_request_error" })
    assert.include(error.message, reason)
    assert.deepInclude(await latest("guarded", before), {
      outcome: "failure",
      error: "GuardrailRefused",
      attempts: 0,
      guardrail: { request: "refused" }
    })
    const other = await failureOf(
      anthropic().messages.create({ model: "guarded", max_tokens: 9, messages: ask(forbidden) })
    )
    assert.instanceOf(other, AnthropicError)
    assert.deepInclude(other, { status: 400 })
    assert.deepNestedInclude(other.error, { "error.type": "invalid_request_error", "error.code": "content_filter" })
    assert.strictEqual(shared().provider.requests.length, called)
    // the next test waits for the event after this one
    await latest("guarded", before + 1)
  })

  it("refuses a stream of chat completions in its middle, and nothing more is sent", async () => {
    const before = await countOf("guarded")
    shared().provider.say(`${words(40)} ${forbidden} ${words(40)}`)
    let text = ""
    const stream = await openai().chat.completions.create({ model: "guarded", messages: ask("go"), stream: true })
    const error = await failureOf((async () => {
      for await (const { choices: [choice] } of stream) text += choice?.delta.content ?? ""
    })())
    assert.deepInclude(error, { code: "content_filter" })
    assert.isTrue(words(40).startsWith(text))
    assert.isAbove(text.length, 100)
    assert.deepInclude(await latest("guarded", before), {
      error: "GuardrailRefused",
      attempts: 1,
      guardrail: { request: "passed", answer: "refused" }
    })
  })

  it("refuses a stream of messages in its middle", async () => {
    shared().provider.say(`${words(40)} ${forbidden} ${words(40)}`)
    let text = ""
    const stream = anthropic().messages.stream({ model: "guarded", max_tokens: 99, messages: ask("go") })
    stream.on("text", (piece) => void (text += piece))
    const error = await failureOf(stream.finalMessage())
    assert.include(String(error), reason)
    assert.isTrue(words(40).startsWith(text))
    assert.isAbove(text.length, 100)
  })

  it("refuses a response, which is not stored then", async () => {
    shared().provider.say(`${words(40)} ${forbidden}`)
    let id = ""
    const stream = await openai().responses.create({ model: "guarded", input: "go", stream: true })
    const error = await failureOf((async () => {
      for await (const event of stream) if (event.type === "response.created") id = event.response.id
    })())
    assert.include(String(error), reason)
    assert.notStrictEqual(id, "")
    assert.deepInclude(await failureOf(openai().responses.retrieve(id)), { status: 404 })
  })

  it("sees the conversation that a response goes on with", async () => {
    const first = await openai().responses.create({ model: "guarded", input: "the first question" })
    await openai().responses.create({ model: "guarded", input: "the second", previous_response_id: first.id })
    assert.include(hook.requests.at(-1), "the first question")
    assert.include(hook.requests.at(-1), "the second")
  })

  it("checks the work of tasks, whose record is not the answer then", async () => {
    shared().provider.say(forbidden)
    const created = await shared().request({ model: "guarded", messages: ask("go") }, {
      headers: { prefer: "respond-async" }
    })
    const { id } = await created.json() as { readonly id: string }
    const read = async () => {
      const headers = { authorization: `Bearer ${shared().key}` }
      const answer = await fetch(`${shared().url}/v1/tasks/${id}`, { headers })
      return await answer.json() as { readonly status: string; readonly error: { readonly code: string } | null }
    }
    const task = await eventually(read, ({ status }) => status === "failed" || status === "completed")
    assert.deepNestedInclude(task, { status: "failed", "error.code": "content_filter" })
  })

  it("checks each request of a batch, and refuses only those that it must", async () => {
    const called = shared().provider.requests.length
    const client = new BatchClient({ url: shared().url, key: shared().key })
    const question = (at: number) => at === 1 ? `question ${at} of a ${forbidden}` : `question ${at}`
    const batch = await client.ended((await client.create("guarded", 3, { question })).id)
    assert.deepInclude(batch, { status: "completed", request_counts: { total: 3, completed: 2, failed: 1 } })
    const { answers, errors: [refused] } = await client.results(batch)
    assert.deepStrictEqual(answers.map(({ custom_id: id }) => id).toSorted(), ["c0", "c2"])
    assert.deepInclude(refused, { custom_id: "c1" })
    assert.deepInclude(refused?.response, { status_code: 400 })
    assert.deepNestedInclude(refused?.response?.body, { "error.code": "content_filter" })
    assert.include(JSON.stringify(refused?.response?.body), reason)
    const sent = shared().provider.requests.slice(called).map(({ body }) => JSON.stringify(body))
    assert.lengthOf(sent, 2)
    assert.notInclude(sent.join(), forbidden)
    assert.lengthOf(hook.requests.filter((request) => request.includes(forbidden)), 1)
  })

  it("checks the prompt of a video before it is begun", async () => {
    const created = await shared().request({ model: "local-video", prompt: `a ${forbidden}` }, {
      path: "/v1/video/generations"
    })
    const { task_id: id } = await created.json() as { readonly task_id: string }
    const read = async () => {
      const headers = { authorization: `Bearer ${shared().key}` }
      const answer = await fetch(`${shared().url}/v1/video/generations/${id}`, { headers })
      return await answer.json() as { readonly status: string; readonly error: { readonly code: string } | null }
    }
    const task = await eventually(read, ({ status }) => status === "failed" || status === "completed")
    assert.deepNestedInclude(task, { status: "failed", "error.code": "content_filter" })
  })

  it("that does not answer refuses by one policy and lets pass by the other, and both say so", async () => {
    hook.mood = "silent"
    const before = { strict: await countOf("strict"), lenient: await countOf("lenient") }
    const error = await failureOf(openai().chat.completions.create({ model: "strict", messages: ask("go") }))
    assert.deepInclude(error, { status: 503, code: "guardrail_unavailable" })
    const answer = await openai().chat.completions.create({ model: "lenient", messages: ask("go") })
    assert.strictEqual(answer.choices[0]?.message.content, words(60))
    assert.deepInclude(await latest("strict", before.strict), { guardrail: { request: "unchecked" } })
    assert.deepInclude(await latest("lenient", before.lenient), {
      outcome: "success",
      guardrail: { request: "unchecked", answer: "unchecked" }
    })
    assert.include(shared().log, "the guardrail gives no verdict")
  })

  it("is counted by its outcomes", async () => {
    const [worker] = shared().workers
    const metrics = await (await fetch(`${worker?.healthUrl}/metrics`)).text()
    for (const outcome of ["passed", "refused", "unchecked"]) {
      assert.match(metrics, new RegExp(`gateway_guardrail_checks_total{[^}]*outcome="${outcome}"`))
    }
  })
})
