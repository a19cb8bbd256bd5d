/**
 * The catalogue: which models there are, which providers serve them, and how those are reached. One YAML file, read by the
 * workers and the console as a whole, and by ingress in part: see `Models.ts`.
 *
 * It is read again when the file changes. An edit that does not decode is reported and changes nothing.
 */
import { Context, Effect, Layer, Result, Schema } from "effect"
import { atLeast, between, integer } from "../contract/Fields.ts"
import type { Workload } from "../contract/Operation.ts"
import * as CatalogueFile from "./CatalogueFile.ts"
import { inconsistencies } from "./Inconsistencies.ts"
import { Model } from "./Model.ts"
import * as SecretReference from "./SecretReference.ts"

/** What `shared/provider/protocols/protocols.ts` can speak. */
export const protocols = ["ai-sdk", "anthropic", "cohere", "dashscope", "gemini", "local", "openai"] as const

/** Milliseconds. */
const Millis = atLeast(1)

const Timeouts = Schema.Struct({
  /** From the request to the first byte of the answer. Default 120,000. */
  firstByteMs: Schema.optionalKey(Millis),
  /** Between two pieces of the answer. Default 60,000. */
  idleMs: Schema.optionalKey(Millis),
  /** For the whole answer. Default 600,000. */
  totalMs: Schema.optionalKey(Millis)
})

const upTo = (maximum: number) => integer(1, maximum)
const Share = between(0, 1)

/** What the provider allows, over all workers together. What is absent is not limited. */
const Limits = Schema.Struct({
  /** Calls at once, 1 to 100,000. A video is one until it is there. */
  concurrency: Schema.optionalKey(upTo(100_000)),
  /** Calls begun within any 60 seconds, 1 to 100,000,000. */
  requestsPerMinute: Schema.optionalKey(upTo(100_000_000)),
  /** Tokens of requests and answers within any 60 seconds, 1 to 1,000,000,000,000. */
  tokensPerMinute: Schema.optionalKey(upTo(1_000_000_000_000)),
  /**
   * Whether a 429 makes the worker hold back what else it has for this model, for as long as the provider's `retry-after`
   * says, and then keep to the pace that the provider was seen to take. Default true.
   */
  adaptive: Schema.optionalKey(Schema.Boolean)
})

/** What becomes of a request whose call failed in a way that may pass, before any of its answer was given. */
const Retry = Schema.Struct({
  /** How many more times it may be sent here, once every other target has failed it too. 0 to 5, default 2. */
  times: integer(0, 5).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(2))
  ),
  /** The pause before the first retry in milliseconds; each further one is twice as long, give or take a fifth. Default 250. */
  baseMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(250))),
  /** The longest such pause in milliseconds; the provider's own `retry-after` comes on top. Default 5,000. */
  maxMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5_000))),
  /** Of all requests to this provider the share that may be retried, 0 to 1. Default 0.15. */
  budget: Share.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0.15)))
})
export type Retry = typeof Retry.Type

/** When a model at this provider is given a rest. Each worker finds out for itself. */
const Breaker = Schema.Struct({
  /** Default true. */
  enabled: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** The share of failures among the last calls at which the rest begins, above 0 to 1. Default 0.5. */
  failureRate: Share.check(Schema.isGreaterThan(0)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(0.5))),
  /** How many calls are looked back on, 1 to 10,000. Default 20. */
  lastCalls: upTo(10_000).pipe(Schema.withDecodingDefaultKey(Effect.succeed(20))),
  /** How many there must have been, 1 to `lastCalls`. Default 5. */
  minimumCalls: upTo(10_000).pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))),
  /** How long the first rest lasts in milliseconds; each that follows on a failed probe is twice as long. Default 1,000. */
  openMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1_000))),
  /** The longest rest in milliseconds. Default 60,000. */
  maxOpenMs: Millis.pipe(Schema.withDecodingDefaultKey(Effect.succeed(60_000)))
})
export type Breaker = typeof Breaker.Type

/** What holds where a provider says nothing of its own. */
export const defaultTimeouts = { firstByteMs: 120_000, idleMs: 60_000, totalMs: 600_000 }
export const defaultRetry = Schema.decodeSync(Retry)({})
export const defaultBreaker = Schema.decodeSync(Breaker)({})

/** Whatever has the look of an address may still be none, as with a port above 65535. */
const isBaseUrl = (text: string): boolean => {
  const url = /^https?:\/\/[^\s?#]+$/.test(text) ? URL.parse(text) : null
  return url !== null && url.username === "" && url.password === ""
}

export const Provider = Schema.Struct({
  protocol: Schema.Literals(protocols),
  /**
   * Where its API begins, as the official clients take it: with `protocol: openai` that ends in `/v1`, with `anthropic` it
   * does not, with `gemini` it ends in `/v1beta`.
   */
  baseUrl: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter(isBaseUrl, { expected: "an http(s) URL without user name, password or query" })
    )
  ),
  /** Where the key is: `${NAME}`, an environment variable of the workers, or `${file:/path}`; never the key itself. */
  apiKey: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text) => SecretReference.parse(text) !== undefined, { expected: SecretReference.expected })
    )
  ),
  /**
   * `always` where a request may be sent a second time when the worker that sent it is lost, because it costs nothing;
   * `neverSent` otherwise. Default: `always` for `local`, `neverSent` for every other protocol.
   */
  redispatch: Schema.optionalKey(Schema.Literals(["always", "neverSent"])),
  timeouts: Schema.optionalKey(Timeouts),
  limits: Schema.optionalKey(Limits),
  retry: Schema.optionalKey(Retry),
  breaker: Schema.optionalKey(Breaker),
  /** Options of the protocol's own, as for the local engines. */
  options: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type Provider = typeof Provider.Type

const Whole = Schema.Struct({
  providers: Schema.Record(Schema.String, Provider),
  models: Schema.Record(Schema.String, Model)
})

export interface Snapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
}

/** Whether a model of this workload is answered by the engine that is built into the worker. */
export const namesEngine = ({ models, providers }: Snapshot, workload: Workload): boolean =>
  models.values().some((model) =>
    model.workload === workload &&
    model.targets.some(({ provider }) => providers.get(provider)?.protocol === "local")
  )

/** A catalogue that decodes, and where in its file things stand. */
export interface Loaded {
  readonly snapshot: Snapshot
  readonly at: CatalogueFile.At
}

const decodeFile = CatalogueFile.decoderOf(Whole)

const decoder: CatalogueFile.Decoder<Snapshot> = (value) =>
  Result.gen(function*() {
    const decoded = yield* decodeFile(value)
    const snapshot: Snapshot = {
      providers: new Map(Object.entries(decoded.providers)),
      models: new Map(Object.entries(decoded.models))
    }
    const mistakes = inconsistencies(snapshot)
    return mistakes.length === 0 ? snapshot : yield* Result.fail(mistakes)
  })

/** Decodes a catalogue. Every mistake is named with its line and path. */
export const parse = (file: string, text: string): Effect.Effect<Snapshot, CatalogueFile.CatalogueInvalid> =>
  Effect.map(CatalogueFile.decodeText(file, text, decoder), ({ value }) => value)

/** Reads and checks a file. */
export const load = (file: string) => Effect.map(inspect(file), ({ snapshot }) => snapshot)

/** The same, for a caller that has more to say about the file. */
export const inspect = (file: string) =>
  CatalogueFile.read(file).pipe(
    Effect.flatMap((text) => CatalogueFile.decodeText(file, text, decoder)),
    Effect.map(({ at, value }): Loaded => ({ snapshot: value, at }))
  )

/** The whole catalogue, for workers and for the console. Ingress reads `Models.ts` instead. */
export class Catalogue extends Context.Service<Catalogue, {
  /** As it stands now. Hold on to it for the length of a request, not longer. */
  readonly current: () => Snapshot
}>()("shared/catalogue/Catalogue") {
  /** Reads the file that `GATEWAY_CONFIG` names (default `deploy/local/gateway.yaml`) and follows its changes. */
  static readonly layer = Layer.effect(
    Catalogue,
    Effect.map(CatalogueFile.follow(decoder), (current) => Catalogue.of({ current }))
  )
}
