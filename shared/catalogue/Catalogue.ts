/**
 * The catalogue: which models there are, which providers serve them, and how those are reached. One YAML file, read by
 * ingress (names, workloads and pools only) and by the workers.
 *
 * It is read again when the file changes. An edit that does not decode is reported and changes nothing.
 */
import { Config, Context, Effect, FileSystem, Layer, Schedule, Schema, SchemaIssue } from "effect"
import { Yaml } from "effect/encoding"
import { workloads } from "../contract/Operation.ts"

/** What `shared/provider/protocols.ts` can speak. */
export const protocols = ["anthropic", "gemini", "local", "openai"] as const

const PositiveInt = Schema.Int.check(Schema.isGreaterThan(0))
/** Milliseconds. */
const Millis = PositiveInt

const Timeouts = Schema.Struct({
  /** From the request to the first byte of the answer. Default 120,000. */
  firstByteMs: Schema.optionalKey(Millis),
  /** Between two pieces of the answer. Default 60,000. */
  idleMs: Schema.optionalKey(Millis),
  /** For the whole answer. Default 600,000. */
  totalMs: Schema.optionalKey(Millis)
})

export const Provider = Schema.Struct({
  protocol: Schema.Literals(protocols),
  /**
   * Where its API begins, as the official clients take it: with `protocol: openai` that ends in `/v1`, with `anthropic` it
   * does not, with `gemini` it ends in `/v1beta`.
   */
  baseUrl: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^https?:\/\/[^\s?#]+$/, { expected: "an http(s) URL" }))
  ),
  /** The key itself or, better, `${NAME}` of an environment variable that holds it. */
  apiKey: Schema.optionalKey(Schema.NonEmptyString),
  /**
   * `always` where a request may be sent a second time when the worker that sent it is lost, because it costs nothing;
   * `neverSent` otherwise. Default: `always` for `local`, `neverSent` for every other protocol.
   */
  redispatch: Schema.optionalKey(Schema.Literals(["always", "neverSent"])),
  timeouts: Schema.optionalKey(Timeouts),
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
  priority: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
})
export type Target = typeof Target.Type

/** A pool is a token of a NATS subject. */
const PoolName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9-]{1,32}$/, { expected: "lower case letters, digits and -" })
)

export const Model = Schema.Struct({
  workload: Schema.Literals(workloads),
  /** A queue and workers of its own. Default `default`. */
  pool: Schema.optionalKey(PoolName),
  targets: Schema.NonEmptyArray(Target)
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

/** The file cannot be read or does not say what a catalogue must. */
export class CatalogueInvalid extends Schema.TaggedError<CatalogueInvalid>()("CatalogueInvalid", {
  file: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.file}: ${this.detail}`
  }
}

// a misspelt field would otherwise be a setting that silently does nothing
const decodeFile = Schema.decodeUnknownEffect(CatalogueFile, { errors: "all", onExcessProperty: "error" })
const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** Decodes a catalogue. Every mistake is named with its path, one to a line. */
export const parse = Effect.fn("Catalogue.parse")(function*(file: string, text: string) {
  const raw = yield* Effect.try({
    try: () => Yaml.parse(text),
    catch: (cause) =>
      new CatalogueInvalid({ file, detail: cause instanceof Error ? cause.message : "it is not valid YAML" })
  })
  const decoded = yield* decodeFile(raw).pipe(
    Effect.mapError((error) => {
      const lines = formatIssue(error.issue).issues.map(({ message, path }) =>
        `${(path ?? []).map((key) => String(key)).join(".") || "the file"}: ${message}`
      )
      return new CatalogueInvalid({ file, detail: lines.join("\n") })
    })
  )
  const snapshot: Snapshot = {
    providers: new Map(Object.entries(decoded.providers)),
    models: new Map(Object.entries(decoded.models))
  }
  const mistakes = inconsistencies(snapshot)
  if (mistakes.length > 0) return yield* new CatalogueInvalid({ file, detail: mistakes.join("\n") })
  return snapshot
})

const inconsistencies = ({ models, providers }: Snapshot): ReadonlyArray<string> => {
  const mistakes: Array<string> = []
  for (const [name, provider] of providers) {
    if (provider.protocol !== "local" && provider.baseUrl === undefined) {
      mistakes.push(`providers.${name}.baseUrl: is missing`)
    }
  }
  for (const [name, model] of models) {
    for (const [index, target] of model.targets.entries()) {
      if (!providers.has(target.provider)) {
        mistakes.push(`models.${name}.targets.${index}.provider: there is no provider '${target.provider}'`)
      }
    }
  }
  return mistakes
}

const read = Effect.fn("Catalogue.read")(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readFileString(file).pipe(
    Effect.mapError((error) => new CatalogueInvalid({ file, detail: `cannot be read (${error.reason._tag})` }))
  )
})

/** Reads and checks a file. */
export const load = (file: string) => Effect.flatMap(read(file), (text) => parse(file, text))

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
      let text = yield* read(file)
      let snapshot = yield* parse(file, text)
      const refresh = Effect.gen(function*() {
        const now = yield* read(file)
        if (now === text) return
        text = now
        snapshot = yield* parse(file, now)
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
