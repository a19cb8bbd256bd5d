/** The cohere protocol against a server that answers like Cohere, Jina and vLLM. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { embeddings, engineEmbeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../../shared/contract/operations/Completions.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import { rerank } from "../../../../shared/contract/operations/Rerank.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"
import { jsonOf, serving } from "../../../fixture/general/Serving.ts"

const key = "cohere-secret"

interface Bench {
  readonly provider: FakeProvider
  readonly ask: (
    operation: Operation,
    body: unknown,
    options?: Provider["options"]
  ) => Effect.Effect<Answered, JobError>
  /** Sets the provider's next answer. */
  readonly answers: (...answers: ReadonlyArray<unknown>) => void
}

const bench = <A, E>(test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make()
    const baseUrl = `http://127.0.0.1:${provider.port}`
    return yield* test({
      provider,
      ask: (operation, body, options) =>
        callProvider({
          operation,
          body,
          name: "cohere",
          model: "alias",
          upstreamModel: "upstream-model",
          key,
          provider: { protocol: "cohere", baseUrl, apiKey: keyReference, ...(options === undefined ? {} : { options }) }
        }),
      answers: (...answers) =>
        provider.behaveOnce(
          ...answers.map((answer) => ({ kind: "raw" as const, pieces: [JSON.stringify(answer)] }))
        )
    })
  }).pipe(Effect.scoped)

interface Completion {
  readonly model: string
  readonly choices: ReadonlyArray<{ readonly message: object; readonly finish_reason: string }>
  readonly usage: object
}

interface Output {
  readonly output: ReadonlyArray<{ readonly type: string }>
}

interface Event {
  readonly type: string
  readonly text?: string
  readonly arguments?: string
}

const dataIn = ({ bytes }: Answered): ReadonlyArray<Event> =>
  bytes.toString().split("\n").flatMap((line) => line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Event] : [])

const read = ({ bytes }: Answered): unknown => JSON.parse(bytes.toString())

describe("rerank", () => {
  const request = { model: "alias", query: "bees", documents: ["a", { text: "b" }], top_n: 1, max_chunks_per_doc: 3 }

  it.live("is relayed unchanged, and metered by its search units", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        const answer = {
          id: "r",
          results: [{ index: 1, relevance_score: 0.5 }],
          meta: { api_version: { version: "1" }, billed_units: { search_units: 1 }, own: true }
        }
        answers(answer)
        const { bytes, usage } = yield* ask(rerank, request)
        assert.strictEqual(bytes.toString(), JSON.stringify(answer))
        assert.deepStrictEqual(usage, { inputTokens: 0, outputTokens: 0, searchUnits: 1 })
        const [received] = provider.requests
        assert.strictEqual(received?.path, "/v1/rerank")
        assert.strictEqual(received?.headers.authorization, `Bearer ${key}`)
        assert.deepStrictEqual(received?.json, { ...request, model: "upstream-model" })
      })
    ))

  it.live("gets an id if the server sends none, and is metered by its tokens", () =>
    bench(({ answers, ask }) =>
      Effect.gen(function*() {
        // as Jina answers
        const answer = { model: "upstream-model", usage: { total_tokens: 9, prompt_tokens: 9 }, results: [] }
        answers(answer)
        const answered = yield* ask(rerank, request)
        const { id, ...rest } = read(answered) as { readonly id: string }
        assert.match(id, /^[0-9a-f-]{36}$/)
        assert.deepStrictEqual(rest, { ...answer, model: "alias" })
        assert.deepStrictEqual(answered.usage, { inputTokens: 9, outputTokens: 0 })
      })
    ))

  it.live("sends a single document as a list of one, at the path set in the catalogue", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        answers({ id: "r", results: [] })
        yield* ask(rerank, { model: "alias", query: "bees", documents: "a" }, { rerankPath: "/v2/rerank" })
        assert.strictEqual(provider.requests[0]?.path, "/v2/rerank")
        assert.deepInclude(provider.requests[0]?.json, { documents: ["a"] })
      })
    ))

  it.live("keeps the provider's message from any error format", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const bodies = [
          { id: "1", message: "top_n: too large" },
          { detail: "top_n: too large" },
          { error: { message: "top_n: too large", code: 400 } },
          { error: "top_n: too large" }
        ]
        for (const body of bodies) {
          provider.behaveOnce({ kind: "raw", status: 400, pieces: [JSON.stringify(body)] })
          const error = yield* Effect.flip(ask(rerank, request))
          assert.deepInclude(error, { _tag: "ProviderRejected", status: 400, message: "top_n: too large" })
        }
      })
    ))

  it.live("fails if the answer has no results, whatever its status", () =>
    bench(({ answers, ask }) =>
      Effect.gen(function*() {
        for (const wrong of [{ message: "no credit" }, { error: { message: "no" } }, { id: "r", results: null }, {}]) {
          answers(wrong)
          const error = yield* Effect.flip(ask(rerank, request))
          assert.deepInclude(error, { _tag: "ProviderFailed", reason: "error" }, JSON.stringify(wrong))
        }
        answers({ object: "error", message: "top_n: too large", type: "BadRequestError", code: 400 })
        assert.deepInclude(yield* Effect.flip(ask(rerank, request)), {
          _tag: "ProviderRejected",
          status: 400,
          message: "top_n: too large"
        })
      })
    ))

  it.live("with an unknown option is an error of the catalogue", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        for (const options of [{ rerankpath: "/v2/rerank" }, { rerankPath: "v2/rerank" }]) {
          assert.deepInclude(yield* Effect.flip(ask(rerank, request, options)), { _tag: "InternalError" })
        }
        assert.isEmpty(provider.requests)
      })
    ))
})

describe("chat", () => {
  const request = { model: "alias", messages: [{ role: "user", content: "How do bees talk?" }] }
  const usage = { input: 100, cached: 60, output: 20 }

  it.live("is answered in the client's format, and metered by what is billed", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say({ reasoning: "Hm.", text: "They dance.", usage })
        const answered = yield* ask(chatCompletions, request)
        const { choices: [choice], model, usage: told } = read(answered) as Completion
        assert.strictEqual(model, "alias")
        assert.deepInclude(choice?.message, { content: "They dance.", reasoning_content: "Hm." })
        assert.strictEqual(choice?.finish_reason, "stop")
        assert.deepInclude(told, { prompt_tokens: 100, completion_tokens: 20 })
        assert.deepInclude(answered.usage, { inputTokens: 100, outputTokens: 20, cachedTokens: 60 })
        assert.strictEqual(provider.requests[0]?.path, "/v2/chat")
        assert.strictEqual(provider.requests[0]?.headers.authorization, `Bearer ${key}`)
        assert.deepStrictEqual(provider.requests[0]?.json, { ...request, model: "upstream-model" })
      })
    ))

  it.live("has different choices although the request has a seed, unless the requests were too large together", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say("They dance.")
        yield* ask(chatCompletions, { ...request, n: 3, seed: 7 })
        const seeds = () => provider.requests.map(({ json }) => (json as { readonly seed?: number }).seed)
        assert.sameMembers(seeds(), [7, 8, 9])
        yield* ask(completions, { model: "alias", prompt: ["One", "Two"], n: 2, seed: 0 })
        assert.sameMembers(seeds().slice(3), [0, 0, 1, 1])
        const messages = [{ role: "user", content: "bees ".repeat(2 * 1024 * 1024) }]
        assert.deepInclude(yield* Effect.flip(ask(chatCompletions, { ...request, messages, n: 8, seed: 7 })), {
          _tag: "InvalidRequest",
          param: "n"
        })
        assert.lengthOf(provider.requests, 7)
      })
    ))

  it.live("has thoughts, the plan and the calls in the order of a stream", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say({ reasoning: "Hm.", text: "I will look.", toolCalls: [{ name: "look", arguments: "{}" }] })
        const { output } = read(yield* ask(responses, { model: "alias", input: "Hello" })) as Output
        assert.deepStrictEqual(output.map(({ type }) => type), ["reasoning", "message", "function_call"])
      })
    ))

  it.live("streams a plan, calls without arguments, and ends with [DONE] or without it", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const event = (type: string, message: object) =>
          `event: ${type}\ndata: ${JSON.stringify({ type, index: 0, delta: { message } })}\n\n`
        const end = `data: ${
          JSON.stringify({
            type: "message-end",
            delta: { finish_reason: "TOOL_CALL", usage: { tokens: { input_tokens: 9, output_tokens: 3 } } }
          })
        }\n\n`
        const pieces = [
          event("message-start", { role: "assistant" }),
          event("tool-plan-delta", { tool_plan: "I will look." }),
          event("tool-call-start", {
            tool_calls: { id: "c", type: "function", function: { name: "now", arguments: "" } }
          }),
          event("tool-call-end", {}),
          end
        ]
        for (const last of ["", "data: [DONE]\n\n"]) {
          provider.behaveOnce({
            kind: "raw",
            headers: { "content-type": "text/event-stream" },
            pieces: [...pieces, last]
          })
          const answered = yield* ask(responses, { model: "alias", input: "Hello", stream: true })
          const events = dataIn(answered)
          assert.deepInclude(events.find(({ type }) => type === "response.output_text.done"), { text: "I will look." })
          assert.deepInclude(events.find(({ type }) => type === "response.function_call_arguments.done"), {
            arguments: "{}"
          })
          assert.strictEqual(events.at(-1)?.type, "response.completed")
          assert.deepInclude(answered.usage, { inputTokens: 9, outputTokens: 3 })
        }
      })
    ))

  it.live("fails if the provider's answer does, or is cut", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        const failureOf = (body: object) => Effect.flip(ask(chatCompletions, body))
        const message = { role: "assistant", content: [{ type: "text", text: "They" }] }
        answers({ finish_reason: "ERROR", message }, { message })
        for (const body of [request, request]) {
          assert.deepInclude(yield* failureOf(body), { _tag: "ProviderFailed", reason: "malformed" })
        }
        provider.say("They dance in the dark.")
        provider.behaveOnce({ kind: "error", after: 3, status: 500, error: { message: "overheated" } })
        assert.deepInclude(yield* failureOf({ ...request, stream: true }), { _tag: "ProviderFailed", reason: "error" })
        provider.behaveOnce({ kind: "cut", after: 3 })
        assert.deepInclude(yield* failureOf({ ...request, stream: true }), { _tag: "ProviderFailed", reason: "cut" })
        const body = JSON.stringify({ message: "too many tokens: the limit is 128000" })
        provider.behaveOnce({ kind: "raw", status: 400, pieces: [body] })
        assert.deepInclude(yield* failureOf(request), { _tag: "ProviderRejected", code: "context_length_exceeded" })
      })
    ))
})

describe("embeddings", () => {
  const answerOf = (vectors: ReadonlyArray<ReadonlyArray<number>>, tokens: number) => ({
    id: "e",
    embeddings: { float: vectors },
    texts: ["one"],
    meta: { api_version: { version: "2" }, billed_units: { input_tokens: tokens } }
  })

  it.live("are requested from /v2/embed, and answered in OpenAI's format", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        answers(answerOf([[0.5, -1], [0.25, 2]], 5))
        const answered = yield* ask(embeddings, { model: "alias", input: ["one", "two"], dimensions: 2, user: "me" })
        assert.deepStrictEqual(read(answered), {
          object: "list",
          data: [
            { object: "embedding", index: 0, embedding: [0.5, -1] },
            { object: "embedding", index: 1, embedding: [0.25, 2] }
          ],
          model: "alias",
          usage: { prompt_tokens: 5, total_tokens: 5 }
        })
        assert.deepStrictEqual(answered.usage, { inputTokens: 5, outputTokens: 0 })
        assert.strictEqual(answered.head?.headers["x-translation-warnings"], "user is not carried over")
        assert.strictEqual(provider.requests[0]?.path, "/v2/embed")
        assert.deepStrictEqual(provider.requests[0]?.json, {
          input_type: "search_document",
          model: "upstream-model",
          texts: ["one", "two"],
          embedding_types: ["float"],
          output_dimension: 2
        })
      })
    ))

  it.live("in base64 are 32-bit floats", () =>
    bench(({ answers, ask }) =>
      Effect.gen(function*() {
        answers(answerOf([[0.5, -1]], 1))
        const body = { model: "alias", input: "one", encoding_format: "base64" }
        const { data } = read(yield* ask(engineEmbeddings, body)) as {
          readonly data: ReadonlyArray<{ readonly embedding: string }>
        }
        const bytes = Buffer.from(data[0]?.embedding ?? "", "base64")
        assert.deepStrictEqual([bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.length], [0.5, -1, 8])
      })
    ))

  it.live("have the input type of the catalogue, unless the client sets one", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        for (const own of [{}, { input_type: "clustering", truncate: "END" }]) {
          answers(answerOf([[1]], 1))
          yield* ask(embeddings, { model: "alias", input: "one", ...own }, { inputType: "search_query" })
          assert.deepInclude(provider.requests.at(-1)?.json, { input_type: "search_query", ...own })
        }
      })
    ))

  it.live("cause no warning for null fields", () =>
    bench(({ answers, ask, provider }) =>
      Effect.gen(function*() {
        answers(answerOf([[1]], 1))
        const request = { model: "alias", input: "one", user: null, input_type: null, dimensions: null }
        const { head } = yield* ask(embeddings, request)
        assert.notProperty(head?.headers, "x-translation-warnings")
        assert.deepInclude(provider.requests[0]?.json, { input_type: "search_document" })
      })
    ))

  it.live("of more texts than the provider's batch come from several calls, in order", () =>
    Effect.gen(function*() {
      const waiting: Array<() => void> = []
      const sizes: Array<number> = []
      // each text is its own number, and the last call is answered first
      const { url } = yield* serving(async (request, response) => {
        const { texts } = await jsonOf(request) as { readonly texts: ReadonlyArray<string> }
        sizes.push(texts.length)
        waiting.push(() => response.end(JSON.stringify(answerOf(texts.map((text) => [Number(text)]), texts.length))))
        if (waiting.length === 3) { for (const answer of waiting.toReversed()) answer() }
      })
      const texts = Array.from({ length: 200 }, (_, index) => String(index))
      const answered = yield* callProvider({
        operation: embeddings,
        body: { model: "alias", input: texts },
        name: "cohere",
        model: "alias",
        provider: { protocol: "cohere", baseUrl: url }
      })
      const { data } = read(answered) as { readonly data: ReadonlyArray<{ readonly embedding: ReadonlyArray<number> }> }
      assert.deepStrictEqual(data.map(({ embedding }) => embedding[0]), texts.map(Number))
      assert.deepStrictEqual(sizes.toSorted((a, b) => a - b), [8, 96, 96])
      assert.strictEqual(answered.usage?.inputTokens, 200)
    }).pipe(Effect.scoped))

  it.live("are metered by an estimate if the provider's count is invalid", () =>
    bench(({ answers, ask }) =>
      Effect.forEach([
        ...[-3, 1.5, "many", null].map((input_tokens) => ({ billed_units: { input_tokens } })),
        { billed_units: null },
        {},
        null
      ], (meta) =>
        Effect.gen(function*() {
          answers({ embeddings: { float: [[1]] }, meta })
          const { usage } = yield* ask(embeddings, { model: "alias", input: "a" })
          assert.deepStrictEqual(usage, { inputTokens: 1, outputTokens: 0, estimatedTokens: 1 })
        }))
    ))

  it.live("fail unless there is one vector per text", () =>
    bench(({ answers, ask }) =>
      Effect.gen(function*() {
        const request = { model: "alias", input: ["one", "two"] }
        for (const wrong of [answerOf([[1]], 1), answerOf([[1], ["two" as never]], 1), { id: "e" }, null]) {
          answers(wrong)
          assert.deepInclude(yield* Effect.flip(ask(embeddings, request)), {
            _tag: "ProviderFailed",
            reason: "malformed"
          })
        }
      })
    ))
})
