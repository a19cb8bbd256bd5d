/** A model in the catalogue: its workload, and the targets that serve it. */
import { Schema, Struct } from "effect"
import { atLeast, between, integer } from "../contract/Fields.ts"
import { PoolName, type Workload, workloads } from "../contract/Operation.ts"
import type { Usage } from "../contract/Usage.ts"
import { Facts } from "./Facts.ts"
import { GuardrailSettings } from "./Guardrail.ts"
import { costOf, Price } from "./Price.ts"
import { Timeouts } from "./Provider.ts"

/**
 * How a target is told to continue the last message of a request, which is the assistant's. `assistant`: by that message alone.
 * `prefix`, `partial`: by that field of the message. `continueFinalMessage`: by `continue_final_message` in the request.
 */
export const Continues = Schema.Literals(["assistant", "prefix", "partial", "continueFinalMessage"])
export type Continues = typeof Continues.Type

/**
 * Which requests go to the same healthy target, to use the provider's prompt cache. `session`: those of one session. `user`: those of one
 * user (`user`, or `metadata.user_id` of messages). `none`: each request picks a target by weight.
 */
export const Sticky = Schema.Literals(["session", "user", "none"])
export type Sticky = typeof Sticky.Type

export const Target = Schema.Struct({
  provider: Schema.NonEmptyString,
  /** Switches the target off: no request is sent to it. Default false. */
  disabled: Schema.optionalKey(Schema.Boolean),
  /** The model's name at the provider. Default: its name here. */
  model: Schema.optionalKey(Schema.NonEmptyString),
  /** Relative share of the requests among targets of the same priority. 0 switches the target off. Default 1. */
  weight: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
  /** Targets of priority 1 are tried after all of priority 0 failed, and so on. Default 0. */
  priority: Schema.optionalKey(atLeast(0)),
  /** Maximum number of tokens of a request and its answer together, at this target. Default: the model's. */
  contextWindow: Schema.optionalKey(atLeast(1)),
  /** Time limits of calls to this target. Default: the model's, then the provider's. */
  timeouts: Schema.optionalKey(Timeouts),
  /** How the target can continue an answer that another call began; see the model's `continuation`. Default: not at all. */
  continues: Schema.optionalKey(Continues),
  /** The price at this target. Default: the model's. */
  price: Schema.optionalKey(Price)
})
export type Target = typeof Target.Type

const Shadow = Schema.Struct({
  /** A model of the same workload. Its own `shadow` does not apply. */
  model: Schema.NonEmptyString,
  /** The share of the requests: above 0, at most 1. */
  share: between(0, 1).check(Schema.isGreaterThan(0))
})
export type Shadow = typeof Shadow.Type

export const Model = Schema.Struct({
  workload: Schema.Literals(workloads),
  /** Switches the model off: neither requests nor other models' fallbacks use it. Default false. */
  disabled: Schema.optionalKey(Schema.Boolean),
  /** Shown to clients by `GET /v1/models`. */
  description: Schema.optionalKey(Schema.NonEmptyString),
  /** The pool whose queue and workers serve the model. Default `default`. */
  pool: Schema.optionalKey(PoolName),
  targets: Schema.NonEmptyArray(Target),
  /** Time limits of calls to the model's own targets. Default: the provider's. */
  timeouts: Schema.optionalKey(Timeouts),
  /** Which requests go to the same one of several targets. Default: `session` if the targets cache prompts, otherwise `none`. */
  sticky: Schema.optionalKey(Sticky),
  /** Models of the same workload to try, in this order, after every target has failed; also with their own fallbacks. */
  fallbacks: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /**
   * Whether a plain-text answer that breaks off is continued by a target with `continues`, which is a second paid call. Default false.
   */
  continuation: Schema.optionalKey(Schema.Boolean),
  /** A model that also gets a share of the requests; its answers are discarded. Default: none. */
  shadow: Schema.optionalKey(Shadow),
  /** Fields that replace those of the guardrail for all models. */
  guardrail: Schema.optionalKey(GuardrailSettings),
  /** Maximum number of videos per request to a video model, 1 to 100. Default 4. */
  maxVideos: Schema.optionalKey(integer(1, 100)),
  ...Facts.fields
})
export type Model = typeof Model.Type

/** A target, and the model or fallback in the catalogue that lists it. */
export interface ListedTarget {
  readonly name: string
  readonly model: Model
  readonly target: Target
}

/** Whether the operator has switched off a target, its model or its provider. */
export const isOff = (
  provider: { readonly disabled?: boolean } | undefined,
  model: Pick<Model, "disabled">,
  { disabled, weight }: Target
): boolean => provider?.disabled === true || model.disabled === true || disabled === true || weight === 0

/** The targets of a model and then those of its fallbacks, in the catalogue's order. A target may be listed twice. */
export function* targetsOf(models: ReadonlyMap<string, Model>, name: string): Generator<ListedTarget> {
  const model = models.get(name)
  if (model === undefined) return
  for (const target of model.targets) yield { name, model, target }
  for (const fallback of model.fallbacks ?? []) yield* targetsOf(models, fallback)
}

/** Whether a model has a price, at any target. */
export const hasPrice = ({ price, targets }: Pick<Model, "price" | "targets">): boolean =>
  price !== undefined || targets.some((target) => target.price !== undefined)

/**
 * The cost of a model's answer, alone or in a batch: by the price of the target that gave it, or else by the model's own price. `null` if
 * price or usage is unknown.
 */
export const costAt = (
  models: ReadonlyMap<string, Model>,
  name: string,
  usage: Usage | undefined,
  endpoint: { readonly name: string; readonly model: string } | undefined,
  inBatch = false
): number | null => {
  const cost = (price: Price | undefined): number | null => {
    const usual = costOf(price, usage)
    return usual === null || !inBatch ? usual : usual * (price?.batch ?? 1)
  }
  for (const { model, name: listed, target } of endpoint === undefined ? [] : targetsOf(models, name)) {
    const isSame = target.provider === endpoint?.name && (target.model ?? listed) === endpoint.model
    if (isSame) return cost(target.price ?? model.price)
  }
  return cost(models.get(name)?.price)
}

/**
 * What is known about a model: from its own settings, those of its first target, and what `known` has for the model's name at that
 * target. Only the catalogue's own prices are billed, and only its own windows affect routing; everything else is for clients.
 */
export const factsOf = (
  name: string,
  model: Facts & { readonly targets?: ReadonlyArray<Target> },
  known: (name: string) => Facts | undefined
): Facts => {
  const [target] = (model.targets ?? []).toSorted((a, b) => (a.priority ?? 0) - (b.priority ?? 0))
  const all: Facts = { ...(target && known(target.model ?? name)), ...model, ...target }
  return Struct.pick(all, Struct.keys(Facts.fields).filter((fact) => all[fact] !== undefined))
}

/** The distinct pools of all models. */
export const poolsOf = (
  { models }: { readonly models: ReadonlyMap<string, Pick<Model, "workload" | "pool">> }
): ReadonlyArray<{ readonly workload: Workload; readonly pool: string }> => [
  ...new Map(
    [...models.values()].map(({ pool = "default", workload }) => [`${workload}.${pool}`, { workload, pool }])
  ).values()
]
