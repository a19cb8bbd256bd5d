/**
 * Everything that can go wrong, as OpenAI's client reports it: the error's class and fields, and whether the client retries.
 */
import { assert, describe, it } from "@effect/vitest"
import type { APIError } from "openai"
import { openais } from "../../fixture/ClientMajors.ts"
import type { Behaviour } from "../../fixture/provider/FakeProvider.ts"
import { type AnyGateway, plain } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const text = "The quick brown fox jumps over the lazy dog"
const chat = (model = "free-chat") => ({ model, messages: [{ role: "user" as const, content: text }] })

const shared = sharedGateway({
  providers: (baseUrl) => `
  hasty: { protocol: openai, baseUrl: "${baseUrl}", timeouts: { firstByteMs: 300 }, ${plain} }
  stalling: { protocol: openai, baseUrl: "${baseUrl}", timeouts: { idleMs: 1500 }, ${plain} }
  gone: { protocol: openai, baseUrl: "http://127.0.0.1:1/v1", ${plain} }`,
  models: `
  hasty-chat: { workload: chat, targets: [{ provider: hasty }] }
  stalling-chat: { workload: chat, targets: [{ provider: stalling }] }
  gone-chat: { workload: chat, targets: [{ provider: gone }] }
  orphan-chat: { workload: chat, pool: orphan, targets: [{ provider: local }] }`
})

/** An expired key and a valid one. Creating a key takes a second, so they are created once. */
let keys: Promise<ReadonlyArray<string>> | undefined

type ErrorClass =
  | "APIError"
  | "AuthenticationError"
  | "BadRequestError"
  | "InternalServerError"
  | "NotFoundError"
  | "PermissionDeniedError"
  | "RateLimitError"
  | "UnprocessableEntityError"

interface Expected {
  readonly class: ErrorClass
  readonly status: number | undefined
  readonly type: string
  readonly code: string | null
  readonly param?: string | null
}

const upstreamError = {
  class: "InternalServerError",
  status: 502,
  type: "upstream_error",
  code: "upstream_error"
} as const
const upstreamTimeout = {
  class: "InternalServerError",
  status: 504,
  type: "timeout_error",
  code: "upstream_timeout"
} as const
/** An error inside a stream has no status. */
const inStream = { class: "APIError", status: undefined } as const

/** A provider's failure, and the client's error if it asked for JSON and if it asked for a stream. */
const failures: ReadonlyArray<{
  readonly what: string
  readonly model?: string
  readonly behaviour: Behaviour
  readonly json?: Expected
  readonly stream?: Expected
}> = [
  {
    what: "answers 400",
    behaviour: { kind: "status", status: 400, error: { message: "no such tool", param: "tools", code: "bad_tool" } },
    json: { class: "BadRequestError", status: 400, type: "invalid_request_error", code: "bad_tool", param: "tools" },
    stream: { class: "BadRequestError", status: 400, type: "invalid_request_error", code: "bad_tool", param: "tools" }
  },
  {
    what: "answers 422",
    behaviour: { kind: "status", status: 422 },
    json: { class: "UnprocessableEntityError", status: 422, type: "invalid_request_error", code: null }
  },
  {
    what: "does not know the model",
    behaviour: { kind: "status", status: 404, error: { type: "not_found_error", code: "model_not_found" } },
    json: { class: "NotFoundError", status: 404, type: "not_found_error", code: "model_not_found" }
  },
  {
    what: "rejects the gateway's key",
    behaviour: { kind: "status", status: 401, error: { message: "provider-secret is no key of ours" } },
    json: upstreamError,
    stream: upstreamError
  },
  { what: "answers 500", behaviour: { kind: "status", status: 500 }, json: upstreamError, stream: upstreamError },
  { what: "answers 503", behaviour: { kind: "status", status: 503 }, json: upstreamError },
  { what: "redirects", behaviour: { kind: "status", status: 307, headers: { location: "/" } }, json: upstreamError },
  {
    what: "cannot be reached",
    model: "gone-chat",
    behaviour: { kind: "answer" },
    json: upstreamError,
    stream: upstreamError
  },
  {
    what: "does not start to answer",
    model: "hasty-chat",
    behaviour: { kind: "silent" },
    json: upstreamTimeout,
    stream: upstreamTimeout
  },
  {
    what: "stalls in the middle",
    model: "stalling-chat",
    behaviour: { kind: "hold", after: 3 },
    json: upstreamTimeout,
    stream: { ...inStream, type: "timeout_error", code: "upstream_timeout" }
  },
  {
    what: "cuts the connection before the answer",
    behaviour: { kind: "cut", after: 0 },
    json: upstreamError,
    stream: upstreamError
  },
  {
    what: "cuts the connection during the answer",
    behaviour: { kind: "cut", after: 3 },
    json: upstreamError,
    stream: { ...upstreamError, ...inStream }
  },
  {
    what: "ends without an answer",
    behaviour: { kind: "truncate", after: 0 },
    json: upstreamError,
    stream: upstreamError
  },
  {
    what: "ends the response cleanly before it is complete",
    behaviour: { kind: "truncate", after: 3 },
    json: upstreamError,
    stream: { ...upstreamError, ...inStream }
  },
  {
    what: "reports an error at once",
    behaviour: { kind: "error", after: 0 },
    json: upstreamError,
    stream: upstreamError
  },
  {
    what: "reports an error midway",
    behaviour: { kind: "error", after: 3 },
    stream: { ...upstreamError, ...inStream }
  },
  {
    what: "sends a web page",
    behaviour: { kind: "raw", pieces: ["<html>"], headers: { "content-type": "text/html" } },
    json: upstreamError,
    stream: upstreamError
  },
  { what: "sends garbage", behaviour: { kind: "raw", pieces: ["<html>"] }, json: upstreamError, stream: upstreamError },
  { what: "sends garbage in an event", behaviour: { kind: "raw", pieces: ["data: <html>\n\n"] }, stream: upstreamError }
]

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = (options: object = {}) => {
    const gateway = shared()
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0, ...options })
    return { gateway, client, completions: client.chat.completions }
  }
  type Client = ReturnType<typeof make>["client"]

  const errorOf = async (answer: Promise<unknown>): Promise<APIError> => {
    const error = await answer.then(() => undefined, (error: unknown) => error)
    assert.instanceOf(error, OpenAI.APIError)
    return error as APIError
  }

  const assertError = (error: APIError, { class: name, code, param = null, status, type }: Expected) => {
    assert.strictEqual(error.constructor, OpenAI[name], `a ${error.constructor.name}: ${error.message}`)
    assert.deepInclude(error, { status, code, type, param })
    assert.match(error.requestID ?? "", /^req_[0-9a-f-]{36}$/)
    assert.notInclude(error.message, "provider-secret")
    assert.notInclude(error.message, "127.0.0.1")
  }

  describe("a request that the gateway rejects", () => {
    const refusals: ReadonlyArray<readonly [what: string, send: (client: Client) => Promise<unknown>, Expected]> = [
      [
        "with a field out of range",
        (client) => client.chat.completions.create({ ...chat(), model: "local-chat", temperature: 3 }),
        {
          class: "BadRequestError",
          status: 400,
          type: "invalid_request_error",
          code: "invalid_value",
          param: "temperature"
        }
      ],
      [
        "with a wrong field deep inside",
        (client) => client.chat.completions.create({ model: "local-chat", messages: [{ role: "user" } as never] }),
        {
          class: "BadRequestError",
          status: 400,
          type: "invalid_request_error",
          code: "invalid_value",
          param: "messages[0].content"
        }
      ],
      [
        "without a key",
        (client) => client.chat.completions.create(chat(), { headers: { Authorization: null } }),
        { class: "AuthenticationError", status: 401, type: "authentication_error", code: "missing_api_key" }
      ],
      [
        "with an invalid key",
        (client) => client.chat.completions.create(chat(), { headers: { Authorization: "Bearer sk-gw-wrong" } }),
        { class: "AuthenticationError", status: 401, type: "authentication_error", code: "invalid_api_key" }
      ],
      [
        "for an unknown model",
        (client) => client.chat.completions.create(chat("no/such-model")),
        { class: "NotFoundError", status: 404, type: "not_found_error", code: "model_not_found", param: "model" }
      ],
      [
        "for the description of an unknown model",
        (client) => client.models.retrieve("no/such-model"),
        { class: "NotFoundError", status: 404, type: "not_found_error", code: "model_not_found", param: "model" }
      ],
      [
        "at an unknown path",
        (client) => client.post("/nowhere", { body: {} }),
        { class: "NotFoundError", status: 404, type: "not_found_error", code: "route_not_found" }
      ],
      [
        "with more than 32 MiB",
        (client) =>
          client.chat.completions.create({
            model: "free-chat",
            messages: [{ role: "user", content: "a".repeat(33 * 1024 * 1024) }]
          }),
        { class: "APIError", status: 413, type: "invalid_request_error", code: "request_too_large" }
      ],
      [
        "that is not JSON",
        (client) => client.post("/chat/completions", { body: "hello", headers: { "content-type": "text/plain" } }),
        { class: "APIError", status: 415, type: "invalid_request_error", code: "unsupported_media_type" }
      ],
      [
        "for a pool without workers",
        // the client sends its timeout in seconds
        (client) => client.chat.completions.create(chat("orphan-chat"), { headers: { "x-stainless-timeout": "1" } }),
        { class: "InternalServerError", status: 503, type: "overloaded_error", code: "queue_timeout" }
      ]
    ]

    it.for(refusals)("%s", async ([_, send, expected]) => {
      const { client, gateway } = make()
      const before = gateway.provider.requests.length
      assertError(await errorOf(send(client)), expected)
      assert.lengthOf(gateway.provider.requests, before, "the provider received the request")
    })

    it("with an expired key, but not with one that expires later", async () => {
      keys ??= Promise.all(["2020-01-01", "2999-01-01"].map((expires) => shared().createKey(expires)))
      const [expired = "", good = ""] = await keys
      assertError(await errorOf(make({ apiKey: expired }).completions.create(chat())), {
        class: "PermissionDeniedError",
        status: 403,
        type: "permission_error",
        code: "expired_api_key"
      })
      const answer = await make({ apiKey: good }).completions.create(chat())
      assert.strictEqual(answer.choices[0]?.message.content, text)
    })
  })

  describe("a provider that", () => {
    // for its model alone, because a provider that is given up early may never get the request
    const behave = ({ provider }: AnyGateway, { behaviour, model = "free-chat" }: typeof failures[number]) =>
      provider.behaveInTurn(model, behaviour)

    it.for(failures.filter(({ json }) => json !== undefined))(
      "$what is an error for a request for JSON",
      async (failure) => {
        const { completions, gateway } = make()
        behave(gateway, failure)
        assertError(await errorOf(completions.create(chat(failure.model))), failure.json!)
      }
    )

    it.for(failures.filter(({ stream }) => stream !== undefined))(
      "$what is an error for a request for a stream",
      async (failure) => {
        const { completions, gateway } = make()
        behave(gateway, failure)
        let heard = ""
        const error = await errorOf((async () => {
          const stream = await completions.create({ ...chat(failure.model), stream: true })
          for await (const { choices } of stream) heard += choices[0]?.delta.content ?? ""
        })())
        assertError(error, failure.stream!)
        assert.strictEqual(heard, failure.stream?.status === undefined ? "The quick " : "")
      }
    )

    it("truncates a stream makes the helper fail, not return half an answer", async () => {
      const { completions, gateway } = make()
      gateway.provider.behaveOnce({ kind: "truncate", after: 3 })
      const error = await errorOf(completions.stream(chat()).finalChatCompletion())
      assertError(error, { ...upstreamError, ...inStream })
    })
  })

  describe("a rate-limited provider", () => {
    const limited = {
      class: "RateLimitError",
      status: 429,
      type: "rate_limit_error",
      code: "rate_limit_exceeded"
    } as const

    it("is a rate limit error with the time to wait", async () => {
      const { completions, gateway } = make()
      gateway.provider.behaveOnce({ kind: "status", status: 429, headers: { "retry-after-ms": "1500" } })
      const error = await errorOf(completions.create(chat()))
      assertError(error, limited)
      assert.strictEqual(error.headers?.get("retry-after-ms"), "1500")
      assert.strictEqual(error.headers?.get("retry-after"), "2")
      assert.isNull(error.headers?.get("x-should-retry") ?? null)
    })

    // Without a hint the client waits at most half a second before its first retry.
    it.for([[{ "retry-after": "1" }, 1_000], [{ "retry-after-ms": "600", "retry-after": "1" }, 600]] as const)(
      "is retried after %o",
      async ([headers, waitMs]) => {
        const { completions, gateway } = make({ maxRetries: 1 })
        const before = gateway.provider.requests.length
        gateway.provider.behaveOnce({ kind: "status", status: 429, headers })
        const answer = await completions.create(chat())
        assert.strictEqual(answer.choices[0]?.message.content, text)
        const [first, second, ...more] = gateway.provider.requests.slice(before)
        assert.isAtLeast(second!.receivedAt - first!.receivedAt, waitMs)
        assert.isEmpty(more)
      }
    )

    it("is not retried if it needs more than a minute", async () => {
      const { completions, gateway } = make({ maxRetries: 2 })
      const before = gateway.provider.requests.length
      gateway.provider.behaveOnce({ kind: "status", status: 429, headers: { "retry-after": "61" } })
      const error = await errorOf(completions.create(chat()))
      assertError(error, limited)
      assert.strictEqual(error.headers?.get("x-should-retry"), "false")
      assert.strictEqual(error.headers?.get("retry-after"), "61")
      assert.lengthOf(gateway.provider.requests, before + 1)
    })
  })

  it("retries by itself after a momentary failure of the provider", async () => {
    const { completions, gateway } = make({ maxRetries: 2 })
    gateway.provider.behaveOnce({ kind: "status", status: 503 }, { kind: "cut", after: 0 })
    assert.strictEqual((await completions.create(chat())).choices[0]?.message.content, text)
  })
})
