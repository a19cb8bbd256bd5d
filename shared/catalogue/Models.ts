/**
 * Reads the part of the catalogue that ingress needs: issuers of tokens, the models' names, workloads, pools and facts, and for video
 * models what shows whether a task can succeed.
 *
 * The file is either the whole catalogue, of whose providers only the protocols are read, or one without providers and targets, as
 * `config models` prints it.
 */
import { Context, Effect, Layer, Predicate, Result, Schema } from "effect"
import { hash } from "node:crypto"
import type { Workload } from "../contract/Operation.ts"
import type { Revision } from "./file/Agreement.ts"
import * as CatalogueFile from "./CatalogueFile.ts"
import { findIdentityMistakes, Identities } from "../keys/Identity.ts"
import { findModelMistakes } from "./Inconsistencies.ts"
import type { Facts } from "./Facts.ts"
import { knownFacts } from "./KnownModels.ts"
import { highestOf, Price } from "./Price.ts"
import { factsOf, Model, type Shadow, Target } from "./Model.ts"
import { videoProtocols } from "./Provider.ts"

/** A model that clients can name. */
export interface OfferedModel extends Facts {
  readonly workload: Workload
  readonly pool: string
  /** The protocols of a video model's targets and fallbacks; absent if unknown. */
  readonly protocols?: ReadonlyArray<string>
  /** See `Model`. */
  readonly maxVideos?: number
  /** See `Model`. */
  readonly shadow?: Shadow
  readonly description?: string
  /** An upper bound, in every part, of the prices at which targets and fallbacks are billed. Absent if they cost nothing. */
  readonly highestPrice?: Price
}

const videoMakers = new Set<string>(videoProtocols)

/** Whether a video model has a target or fallback that makes videos; true if unknown. */
export const makesVideos = ({ protocols }: OfferedModel): boolean =>
  protocols?.some((protocol) => videoMakers.has(protocol)) ?? true

/** Whether only the built-in engine serves a video model. */
export const isBuiltIn = ({ protocols }: OfferedModel): boolean =>
  protocols?.every((protocol) => protocol === "local") ?? false

export interface ModelSnapshot {
  /** The issuers of tokens that ingress accepts in place of API keys, if any. */
  readonly identities?: Identities
  readonly models: ReadonlyMap<string, OfferedModel>
}

const Part = Schema.Struct({
  identities: Schema.optionalKey(Identities),
  models: Schema.Record(
    Schema.String,
    Schema.Struct({
      ...Model.fields,
      targets: Schema.optionalKey(Schema.NonEmptyArray(Target)),
      protocols: Schema.optionalKey(Schema.Array(Schema.String)),
      highestPrice: Schema.optionalKey(Price)
    })
  )
})
type Part = typeof Part.Type

const decodePart = CatalogueFile.decoderOf(Part)

/** Splits off the guardrail and the providers. Of providers only the protocols stay, by name; this version may not know them. */
const split = (value: unknown): { readonly rest: unknown; readonly protocols: ReadonlyMap<string, unknown> } => {
  if (!Predicate.isReadonlyObject(value)) return { rest: value, protocols: new Map() }
  const { guardrail: _, providers, ...rest } = value
  const entries = Predicate.isReadonlyObject(providers) ? Object.entries(providers) : []
  const protocolOf = (provider: unknown) => Predicate.hasProperty(provider, "protocol") ? provider.protocol : undefined
  return { rest, protocols: new Map(entries.map(([name, provider]) => [name, protocolOf(provider)])) }
}

/** The protocols that serve a model or its fallbacks; `undefined` if one of them is unknown. */
const protocolsOf = (
  models: ReadonlyMap<string, Part["models"][string]>,
  name: string,
  known: ReadonlyMap<string, unknown>
): ReadonlyArray<string> | undefined => {
  const { fallbacks = [], protocols, targets } = models.get(name) ?? {}
  const own = protocols ?? targets?.map(({ provider }) => known.get(provider))
  const all = [own, ...fallbacks.map((fallback) => protocolsOf(models, fallback, known))].flat()
  return all.every(Predicate.isString) ? [...new Set(all)] : undefined
}

/** The prices at which answers of a model may be billed. */
const pricesOf = (models: ReadonlyMap<string, Part["models"][string]>, name: string): ReadonlyArray<Price> => {
  const { fallbacks = [], highestPrice, price, targets } = models.get(name) ?? {}
  // printed by `config models`, which may show a `price` that is not billed
  if (targets === undefined) return highestPrice === undefined ? [] : [highestPrice]
  const own = [price, ...targets.map((target) => target.price)]
  return [...own.filter((price) => price !== undefined), ...fallbacks.flatMap((fallback) => pricesOf(models, fallback))]
}

const decoder: CatalogueFile.Decoder<ModelSnapshot> = (value) =>
  Result.gen(function*() {
    const { protocols: known, rest } = split(value)
    const { identities = {}, models: decoded } = yield* decodePart(rest)
    const models = new Map(Object.entries(decoded))
    const mistakes = [...findModelMistakes(models), ...findIdentityMistakes(identities)]
    if (mistakes.length > 0) return yield* Result.fail(mistakes)
    return {
      ...(Object.keys(identities).length === 0 ? {} : { identities }),
      models: new Map(
        [...models].map(([name, model]): [string, OfferedModel] => {
          const { description, maxVideos, pool = "default", shadow, workload } = model
          const protocols = workload === "video" ? protocolsOf(models, name, known) : undefined
          const highestPrice = highestOf(pricesOf(models, name))
          return [name, {
            workload,
            pool,
            ...(description === undefined ? {} : { description }),
            ...(protocols === undefined ? {} : { protocols }),
            ...(maxVideos === undefined ? {} : { maxVideos }),
            ...(shadow === undefined ? {} : { shadow }),
            ...(highestPrice === undefined ? {} : { highestPrice }),
            ...factsOf(name, model, knownFacts)
          }]
        })
      )
    }
  })

/** Writes a value as JSON with its members in alphabetical order, so that equal values have the same text. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, member: unknown) => {
    const plain = member instanceof Map ? Object.fromEntries(member) : member
    return Predicate.isReadonlyObject(plain) && !Array.isArray(plain)
      ? Object.fromEntries(Object.entries(plain).toSorted(([a], [b]) => a < b ? -1 : 1))
      : plain
  })

/** Identifies what clients see of a catalogue. It is the same for the whole file and for the part that `config models` prints. */
export const revisionOf = (text: string): Revision =>
  Result.match(CatalogueFile.decode(text, decoder), {
    onFailure: () => ({}),
    onSuccess: ({ value }) => ({ models: hash("sha256", canonical(value)) })
  })

/** Decodes the models of a catalogue. */
export const parse = (file: string, text: string): Effect.Effect<ModelSnapshot, CatalogueFile.CatalogueInvalid> =>
  Effect.map(CatalogueFile.decodeText(file, text, decoder), ({ value }) => value)

/** Reads and checks a file. */
export const load = (file: string) => Effect.flatMap(CatalogueFile.read(file), (text) => parse(file, text))

export class Models extends Context.Service<Models, {
  /** The current models. Use them for one request at most. */
  readonly current: () => ModelSnapshot
}>()("shared/catalogue/Models") {
  /** Reads the file named by `GATEWAY_CONFIG` (default `deploy/local/gateway.yaml`) and follows its changes; see `file/Agreement.ts`. */
  static readonly layer = Layer.effect(
    Models,
    Effect.map(CatalogueFile.follow(decoder, revisionOf), (current) => Models.of({ current }))
  )
}
