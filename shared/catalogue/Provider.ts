/** A provider in the catalogue: how workers reach it, and its timeouts, limits, retries and circuit breaker. */
import { Effect, Schema } from "effect"
import { atLeast, between, integer } from "../contract/Fields.ts"
import * as SecretReference from "./SecretReference.ts"

/** The names of the protocols: the keys in `shared/provider/protocols/protocols.ts`. */
export const protocols = ["ai-sdk", "anthropic", "cohere", "dashscope", "gemini", "local", "openai"] as const

/** The protocols that can make videos: the engines in `shared/provider/routing/VideoProviders.ts`. */
export const videoProtocols = ["ai-sdk", "dashscope", "local"] as const satisfies ReadonlyArray<
  typeof protocols[number]
>

/** Milliseconds. */
const Millis = atLeast(1)

/**
 * Time limits of a call, in milliseconds. A target's go before its model's, and those before its provider's. A call that ends at a limit
 * which is set somewhere may be followed by one to another target, although the provider may bill both; see `RetryRules.ts`.
 */
export const Timeouts = Schema.Struct({
  /** From the request to the first byte of the answer. Default: 300,000 for a stream, for other answers no limit but `totalMs`. */
  firstByteMs: Schema.optionalKey(Millis),
  /**
   * From the request to the first content of a streamed answer: text, reasoning or a tool call. Off by default, because a model that
   * thinks silently would be paid for twice.
   */
  firstTokenMs: Schema.optionalKey(Millis),
  /** Between two chunks of the answer. Default: 300,000 for a stream, for other answers no limit but `totalMs`. */
  idleMs: Schema.optionalKey(Millis),
  /** For the whole answer. Default 1,800,000; in the background, a day. */
  totalMs: Schema.optionalKey(Millis)
})
export type Timeouts = typeof Timeouts.Type

const upTo = (maximum: number) => integer(1, maximum)
const Share = between(0, 1)

/** The provider's limits, shared by all workers. A missing one is unlimited. */
const Limits = Schema.Struct({
  /** Concurrent calls, 1 to 100,000. A video counts as one until it is complete. */
  concurrency: Schema.optionalKey(upTo(100_000)),
  /** Calls started within any 60 seconds, 1 to 100,000,000. */
  requestsPerMinute: Schema.optionalKey(upTo(100_000_000)),
  /** Tokens of requests and answers within any 60 seconds, 1 to 1,000,000,000,000. */
  tokensPerMinute: Schema.optionalKey(upTo(1_000_000_000_000)),
  /**
   * Whether a 429 makes a worker hold the other requests of the same key to this model for the provider's `retry-after`, or those of
   * all keys if it concerns them too, and then keep them to the rate that the provider accepts. Default true.
   */
  adaptive: Schema.optionalKey(Schema.Boolean)
})

/** Retries of calls that failed with a transient error before any of the answer was sent to the client. */
const Retry = Schema.Struct({
  /**
   * Maximum number of retries of a request at this provider, 0 to 5, default 2. After a brief failure, the first one comes before any
   * other target is called; the others come once every target has failed.
   */
  times: integer(0, 5).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(2))
  ),
  /** The pause before the first retry, in milliseconds; it doubles each time, with a jitter of a fifth. Default 250. */
  baseMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(250))),
  /**
   * The longest pause in milliseconds if the provider states no `retry-after`, and the longest `retry-after` to wait for while other
   * targets are left. Default 5,000.
   */
  maxMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5_000))),
  /** The share of all requests to this provider that may be retried, 0 to 1. Default 0.15. */
  budget: Share.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0.15)))
})
export type Retry = typeof Retry.Type

/** Circuit breakers per model at this provider: one per key, and one for all if calls of several keys fail. Each worker has its own. */
const Breaker = Schema.Struct({
  /** Default true. */
  enabled: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** The share of failures among the last calls that opens the circuit: above 0, at most 1. Default 0.5. */
  failureRate: Share.check(Schema.isGreaterThan(0)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(0.5))),
  /** How many of the last calls count, 1 to 10,000. Default 20. */
  lastCalls: upTo(10_000).pipe(Schema.withDecodingDefaultKey(Effect.succeed(20))),
  /** The calls needed before the circuit can open, 1 to `lastCalls`. Default 5. */
  minimumCalls: upTo(10_000).pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))),
  /** How long the circuit first stays open, in milliseconds; doubled after each failed probe. Default 1,000. */
  openMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1_000))),
  /** The longest time that the circuit stays open, in milliseconds, unless the provider asks for more. Default 10,000. */
  maxOpenMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10_000)))
})
export type Breaker = typeof Breaker.Type

/** The defaults for providers without settings of their own. */
export const defaultTimeouts = { silenceMs: 300_000, totalMs: 1_800_000, backgroundMs: 24 * 3_600_000 }
export const defaultRetry = Schema.decodeSync(Retry)({})
export const defaultBreaker = Schema.decodeSync(Breaker)({})

/** Also parses the URL, because the pattern alone accepts invalid ones, for example with a port above 65535. */
const isHttpUrl = (text: string): boolean => {
  const url = /^https?:\/\/[^\s?#]+$/.test(text) ? URL.parse(text) : null
  return url !== null && url.username === "" && url.password === ""
}

export const HttpUrl = Schema.String.check(
  Schema.makeFilter(isHttpUrl, { expected: "an http(s) URL without user name, password or query" })
)

export const Provider = Schema.Struct({
  protocol: Schema.Literals(protocols),
  /** Switches the provider off: no request is sent to it. Tasks that it has begun are still followed. Default false. */
  disabled: Schema.optionalKey(Schema.Boolean),
  /**
   * The API's base URL, in the form that the official clients use: it ends in `/v1` for `protocol: openai` and in `/v1beta` for
   * `gemini`, and has no version for `anthropic`.
   */
  baseUrl: Schema.optionalKey(HttpUrl),
  /** A reference to the key: `${NAME}`, an environment variable of the workers, or `${file:/path}`. Never the key itself. */
  apiKey: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text) => SecretReference.parse(text) !== undefined, { expected: SecretReference.expected })
    )
  ),
  /**
   * Whether a request may be sent again if its worker is lost after sending it, because a second call costs nothing. Default: true
   * for `local`, false for all other protocols.
   */
  idempotent: Schema.optionalKey(Schema.Boolean),
  /** Deprecated: `always` is `idempotent: true`, `neverSent` is `idempotent: false`. Removed in the next minor version. */
  redispatch: Schema.optionalKey(Schema.Literals(["always", "neverSent"])),
  timeouts: Schema.optionalKey(Timeouts),
  limits: Schema.optionalKey(Limits),
  retry: Schema.optionalKey(Retry),
  breaker: Schema.optionalKey(Breaker),
  /** Options of the protocol or of the local engine. */
  options: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type Provider = typeof Provider.Type

/** Whether a call to this provider may be made twice. */
export const isIdempotent = ({ idempotent, protocol, redispatch }: Provider): boolean =>
  idempotent ?? (redispatch === undefined ? protocol === "local" : redispatch === "always")

/** The APIs by which providers with the protocol `openai` can serve chat. */
export const chatApis = ["chatCompletions", "responses"] as const
export type ChatApi = typeof chatApis[number]

const isChatApi = (api: unknown): api is ChatApi => chatApis.some((known) => known === api)

/** The servers that have both APIs: OpenAI and Azure. Most others have only the older one. */
const hasBoth = /^https:\/\/(?:[\w-]+\.)*openai(?:\.azure)?\.com(?:[:/]|$)/

/** The option `apis`, or its default. */
export const chatApisOf = ({ baseUrl = "", options }: Provider): ReadonlyArray<ChatApi> => {
  const apis = options?.["apis"]
  if (Array.isArray(apis)) return apis.filter(isChatApi)
  return hasBoth.test(baseUrl) ? chatApis : ["chatCompletions"]
}

/** Whether chat requests to this provider are sent with the id of their session as `prompt_cache_key`. */
export const sendsCacheKey = ({ options }: Provider): boolean => options?.["promptCacheKey"] === true
