/**
 * Reads the catalogue: models, the providers that serve them, and how to reach the providers. It is one YAML file, of which workers and
 * the console read everything and ingress a part (`Models.ts`).
 *
 * Changes of the file are applied within a few seconds, by all processes or by none: see `file/Agreement.ts`. A change that one of them
 * cannot use is logged and ignored.
 */
import { Context, Effect, Layer, Result, Schema } from "effect"
import { hash } from "node:crypto"
import * as CatalogueFile from "./CatalogueFile.ts"
import type { Revision } from "./file/Agreement.ts"
import { findGuardrailMistakes, type Guardrail, GuardrailSettings, guardrailsOf } from "./Guardrail.ts"
import { findIdentityMistakes, Identities } from "../keys/Identity.ts"
import { findInconsistencies, type Finding } from "./Inconsistencies.ts"
import { Model } from "./Model.ts"
import * as Models from "./Models.ts"
import { Provider } from "./Provider.ts"

const Whole = Schema.Struct({
  guardrail: Schema.optionalKey(GuardrailSettings),
  identities: Schema.optionalKey(Identities),
  providers: Schema.Record(Schema.String, Provider),
  models: Schema.Record(Schema.String, Model)
})

export interface Snapshot {
  readonly providers: ReadonlyMap<string, Provider>
  readonly models: ReadonlyMap<string, Model>
  /** The guardrails of the models that have one, by the model's name. */
  readonly guardrails?: ReadonlyMap<string, Guardrail>
}

const decodeFile = CatalogueFile.decoderOf(Whole)

const decoder: CatalogueFile.Decoder<Snapshot> = (value) =>
  Result.gen(function*() {
    const decoded = yield* decodeFile(value)
    const models = new Map(Object.entries(decoded.models))
    const guardrails = guardrailsOf(models, decoded.guardrail)
    const snapshot: Snapshot = {
      providers: new Map(Object.entries(decoded.providers)),
      models,
      ...(guardrails.size === 0 ? {} : { guardrails })
    }
    const mistakes = [
      ...findInconsistencies(snapshot),
      ...findGuardrailMistakes(models, decoded.guardrail),
      ...findIdentityMistakes(decoded.identities ?? {})
    ]
    return mistakes.length === 0 ? snapshot : yield* Result.fail(mistakes)
  })

const revisionOf = (text: string): Revision => ({ ...Models.revisionOf(text), whole: hash("sha256", text) })

/** Decodes a catalogue. The error lists every mistake with its line and path. */
export const parse = (file: string, text: string): Effect.Effect<Snapshot, CatalogueFile.CatalogueInvalid> =>
  Effect.map(CatalogueFile.decodeText(file, text, decoder), ({ value }) => value)

/** Reads and checks a file. */
export const load = (file: string) => Effect.map(inspect(file), ({ value }) => value)

/** Like `load`, with the lines of the file for further messages. */
export const inspect = (file: string) =>
  Effect.flatMap(CatalogueFile.read(file), (text) => CatalogueFile.decodeText(file, text, decoder))

/**
 * Finds what a process needs for a new catalogue and did not need for the old one, but lacks, such as the keys of providers. By default it
 * needs nothing.
 */
export const Needs = Context.Reference<
  (to: Snapshot, from: Snapshot) => Effect.Effect<ReadonlyArray<Finding>>
>("shared/catalogue/Needs", { defaultValue: () => () => Effect.succeed([]) })

/** The whole catalogue, for workers and the console. Ingress uses `Models.ts` instead. */
export class Catalogue extends Context.Service<Catalogue, {
  /** The current catalogue. Use it for one request at most. */
  readonly current: () => Snapshot
}>()("shared/catalogue/Catalogue") {
  /** Reads the file named by `GATEWAY_CONFIG` (default `deploy/local/gateway.yaml`) and follows its changes. */
  static readonly layer = Layer.effect(
    Catalogue,
    Effect.gen(function*() {
      const current = yield* CatalogueFile.follow(decoder, revisionOf, yield* Needs)
      return Catalogue.of({ current })
    })
  )
}
