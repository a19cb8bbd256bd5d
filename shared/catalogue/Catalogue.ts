/**
 * The catalogue: which models there are, which providers serve them, and how those are reached. One YAML file, read by
 * ingress (names, workloads and pools only) and by the workers.
 *
 * It is read again when the file changes. An edit that does not decode is reported and changes nothing.
 */
import { Config, Context, Effect, FileSystem, Layer, Result, Schedule, Schema } from "effect"
import { atLeast, between, integer } from "../contract/Fields.ts"
import * as Mistake from "../contract/Mistake.ts"
import { PoolName, type Workload, workloads } from "../contract/Operation.ts"
import { inconsistencies } from "./Inconsistencies.ts"
import { Price } from "./Price.ts"
import * as SecretReference from "./SecretReference.ts"
import * as YamlText from "./YamlText.ts"

/** What `shared/provider/protocols.ts` can speak. */
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
const isBaseUrl = (text: string): boolean => /^https?:\/\/[^\s?#]+$/.test(text) && URL.canParse(text)

export const Provider = Schema.Struct({
  protocol: Schema.Literals(protocols),
  /**
   * Where its API begins, as the official clients take it: with `protocol: openai` that ends in `/v1`, with `anthropic` it
   * does not, with `gemini` it ends in `/v1beta`.
   */
  baseUrl: Schema.optionalKey(
    Schema.String.check(Schema.makeFilter(isBaseUrl, { expected: "an http(s) URL without a query" }))
  ),
  /** Where the key is: `${NAME}`, an environment variable, or `${file:/path}`. The key itself would do, but not in a file. */
  apiKey: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(SecretReference.pattern, { expected: "a reference such as ${NAME} or ${file:/path}" })
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

export const Target = Schema.Struct({
  provider: Schema.NonEmptyString,
  /** The model's name at the provider, where it differs. */
  model: Schema.optionalKey(Schema.NonEmptyString),
  /** Share of the requests among the targets of one priority. Default 1. */
  weight: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  /** Targets of priority 1 are tried only when those of priority 0 have failed, and so on. Default 0. */
  priority: Schema.optionalKey(atLeast(0))
})
export type Target = typeof Target.Type

export const Model = Schema.Struct({
  workload: Schema.Literals(workloads),
  /** A queue and workers of its own. Default `default`. */
  pool: Schema.optionalKey(PoolName),
  targets: Schema.NonEmptyArray(Target),
  /**
   * `user` sends all requests of one user (`user`, or `metadata.user_id` of messages) to the same target while it is well,
   * for the sake of what the provider remembers of the last one. Default: every request is drawn by weight alone.
   */
  sticky: Schema.optionalKey(Schema.Literal("user")),
  /** Models of the same workload that are tried in this order once every target has failed, with their own fallbacks. */
  fallbacks: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** What it costs, whichever target serves it. Default: it is not known. */
  price: Schema.optionalKey(Price)
})
export type Model = typeof Model.Type

const CatalogueFile = Schema.Struct({
  providers: Schema.Record(Schema.String, Provider),
  models: Schema.Record(Schema.String, Model)
})

export interface Snapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
}

/** The pools of all models, each once. */
export const poolsOf = (
  { models }: Snapshot
): ReadonlyArray<{ readonly workload: Workload; readonly pool: string }> => [
  ...new Map(
    [...models.values()].map(({ pool = "default", workload }) => [`${workload}.${pool}`, { workload, pool }])
  ).values()
]

/** Whether a model of this workload is answered by the engine that is built into the worker. */
export const namesEngine = ({ models, providers }: Snapshot, workload: Workload): boolean =>
  models.values().some((model) =>
    model.workload === workload &&
    model.targets.some(({ provider }) => providers.get(provider)?.protocol === "local")
  )

const Located = Schema.Struct({
  /** `null` where it is the file as a whole that is wrong. */
  line: Schema.NullOr(Schema.Int),
  message: Schema.String
})
type Located = typeof Located.Type

/** A mistake as a line of text, as compilers write them. */
export const located = (file: string, { line, message }: Located): string =>
  line === null ? `${file}: ${message}` : `${file}:${line} ${message}`

/** The file cannot be read or does not say what a catalogue must. */
export class CatalogueInvalid extends Schema.TaggedError<CatalogueInvalid>()("CatalogueInvalid", {
  file: Schema.String,
  mistakes: Schema.NonEmptyArray(Located)
}) {
  override get message() {
    return this.mistakes.map((mistake) => located(this.file, mistake)).join("\n")
  }
}

// a misspelt field would otherwise be a setting that silently does nothing
const decodeFile = Schema.decodeUnknownResult(CatalogueFile, { errors: "all", onExcessProperty: "error" })

/** A catalogue that decodes, and where in its file things stand. */
export interface Loaded {
  readonly snapshot: Snapshot
  /** What is wrong, or worth a word, at a place of the file. */
  readonly at: (path: ReadonlyArray<PropertyKey>, message: string) => Located
}

const decode = (text: string): Result.Result<Loaded, ReadonlyArray<Located>> =>
  Result.gen(function*() {
    const yaml = yield* YamlText.read(text)
    const at: Loaded["at"] = (path, message) => ({
      line: yaml.lineOf(path),
      message: Mistake.line({ path, message }, "the file")
    })
    const decoded = yield* Result.mapError(
      decodeFile(yaml.value),
      ({ issue }) => Mistake.all(issue, yaml.value).map(({ message, path }) => at(path, message))
    )
    const snapshot: Snapshot = {
      providers: new Map(Object.entries(decoded.providers)),
      models: new Map(Object.entries(decoded.models))
    }
    const mistakes = inconsistencies(snapshot).map(({ message, path }) => at(path, message))
    return mistakes.length === 0 ? { snapshot, at } : yield* Result.fail(mistakes)
  })

const decodeFrom = (file: string, text: string): Effect.Effect<Loaded, CatalogueInvalid> =>
  Effect.suspend(() => {
    const decoded = decode(text)
    if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success)
    const [first = { line: null, message: "it is not valid YAML" }, ...others] = decoded.failure
    return Effect.fail(new CatalogueInvalid({ file, mistakes: [first, ...others] }))
  })

/** Decodes a catalogue. Every mistake is named with its line and path. */
export const parse = (file: string, text: string): Effect.Effect<Snapshot, CatalogueInvalid> =>
  Effect.map(decodeFrom(file, text), ({ snapshot }) => snapshot)

const unread = "cannot be read: is it a file, and may this user read it?"

const read = Effect.fn("Catalogue.read")(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(file).pipe(
    Effect.mapError(() => new CatalogueInvalid({ file, mistakes: [{ line: null, message: unread }] }))
  )
})

/** Reads and checks a file. */
export const load = (file: string) => Effect.map(inspect(file), ({ snapshot }) => snapshot)

/** The same, for whoever has more to say about the file. */
export const inspect = (file: string) => Effect.flatMap(read(file), (text) => decodeFrom(file, text))

/** How soon a change of the file is seen. Polling sees what a ConfigMap's swap of links hides from a watch. */
const lookAgain = Schedule.spaced("1 second")

export class Catalogue extends Context.Service<Catalogue, {
  /** As it stands now. Hold on to it for the length of a request, not longer. */
  readonly current: () => Snapshot
}>()("shared/catalogue/Catalogue") {
  /** Reads the file that `GATEWAY_CONFIG` names (default `deploy/local/gateway.yaml`) and follows its changes. */
  static readonly layer = Layer.effect(
    Catalogue,
    Effect.gen(function*() {
      const file = yield* Config.String("GATEWAY_CONFIG").pipe(Config.withDefault("deploy/local/gateway.yaml"))
      /** What was found at the last look; `undefined` where it could not be read. What is told of it is told once. */
      let text: string | undefined = yield* read(file)
      let snapshot = yield* parse(file, text)
      const refresh = Effect.gen(function*() {
        const found = yield* Effect.result(read(file))
        const now = Result.isSuccess(found) ? found.success : undefined
        if (now === text) return
        text = now
        snapshot = yield* parse(file, yield* Effect.fromResult(found))
        yield* Effect.logInfo("catalogue reloaded", { file, models: snapshot.models.size })
      }).pipe(
        Effect.catchTag(
          "CatalogueInvalid",
          (error) => Effect.logError("catalogue not reloaded, the old one stays", { detail: error.message })
        )
      )
      // a trace for every look would drown those of requests
      yield* refresh.pipe(Effect.withTracerEnabled(false), Effect.repeat(lookAgain), Effect.forkScoped)
      return Catalogue.of({ current: () => snapshot })
    })
  )
}
