/** What the catalogue says of a model: its name and workload, and the targets that serve it. */
import { Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { PoolName, type Workload, workloads } from "../contract/Operation.ts"
import { Price } from "./Price.ts"

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

/** The pools of all models, each once. */
export const poolsOf = (
  { models }: { readonly models: ReadonlyMap<string, Pick<Model, "workload" | "pool">> }
): ReadonlyArray<{ readonly workload: Workload; readonly pool: string }> => [
  ...new Map(
    [...models.values()].map(({ pool = "default", workload }) => [`${workload}.${pool}`, { workload, pool }])
  ).values()
]
