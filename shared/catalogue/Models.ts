/**
 * The part of the catalogue that ingress reads: the models' names, workloads and pools.
 *
 * The file is either the whole catalogue, whose providers are not decoded, or one without providers and targets, as
 * `config models` prints it.
 */
import { Context, Effect, Layer, Predicate, Result, Schema } from "effect"
import type { Workload } from "../contract/Operation.ts"
import * as CatalogueFile from "./CatalogueFile.ts"
import { findFallbackMistakes } from "./Inconsistencies.ts"
import { Model, Target } from "./Model.ts"

/** A model that clients can name. */
export interface OfferedModel {
  readonly workload: Workload
  readonly pool: string
}

export interface ModelSnapshot {
  readonly models: ReadonlyMap<string, OfferedModel>
}

const Part = Schema.Struct({
  models: Schema.Record(
    Schema.String,
    Schema.Struct({ ...Model.fields, targets: Schema.optionalKey(Schema.NonEmptyArray(Target)) })
  )
})

const decodePart = CatalogueFile.decoderOf(Part)

const withoutProviders = (value: unknown): unknown => {
  if (!Predicate.isReadonlyObject(value)) return value
  const { providers: _providers, ...rest } = value
  return rest
}

const decoder: CatalogueFile.Decoder<ModelSnapshot> = (value) =>
  Result.gen(function*() {
    const models = new Map(Object.entries((yield* decodePart(withoutProviders(value))).models))
    const mistakes = findFallbackMistakes(models)
    if (mistakes.length > 0) return yield* Result.fail(mistakes)
    return {
      models: new Map(
        [...models].map(([name, { pool = "default", workload }]): [string, OfferedModel] => [name, { workload, pool }])
      )
    }
  })

/** Decodes the models of a catalogue. */
export const parse = (file: string, text: string): Effect.Effect<ModelSnapshot, CatalogueFile.CatalogueInvalid> =>
  Effect.map(CatalogueFile.decodeText(file, text, decoder), ({ value }) => value)

/** Reads and checks a file. */
export const load = (file: string) => Effect.flatMap(CatalogueFile.read(file), (text) => parse(file, text))

export class Models extends Context.Service<Models, {
  /** The current models. Hold them for one request at most. */
  readonly current: () => ModelSnapshot
}>()("shared/catalogue/Models") {
  /** Reads the file named by `GATEWAY_CONFIG` (default `deploy/local/gateway.yaml`) and follows its changes. */
  static readonly layer = Layer.effect(
    Models,
    Effect.map(CatalogueFile.follow(decoder), (current) => Models.of({ current }))
  )
}
