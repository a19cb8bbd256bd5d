/** `/api/models` and `/api/fleet`: what the catalogue offers, and what the processes behind it are doing just now. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { workloads } from "../../../shared/contract/Operation.ts"
import { Admin } from "./Admin.ts"
import { Unavailable } from "./Errors.ts"

const Workload = Schema.Literals(workloads)

/** How many workers see the circuit of a model at a provider in which state. */
export const Circuits = Schema.Struct({ closed: Schema.Int, halfOpen: Schema.Int, open: Schema.Int })
export type Circuits = typeof Circuits.Type

export const TargetView = Schema.Struct({
  provider: Schema.String,
  /** The model's name at the provider. */
  model: Schema.String,
  weight: Schema.Finite,
  priority: Schema.Int,
  /** `null` where no worker has called it yet. */
  circuits: Schema.NullOr(Circuits)
})
export type TargetView = typeof TargetView.Type

export const ModelView = Schema.Struct({
  name: Schema.String,
  workload: Workload,
  pool: Schema.String,
  targets: Schema.Array(TargetView),
  /** Workers of its pool that take jobs now. */
  workers: Schema.Int
})
export type ModelView = typeof ModelView.Type

export const ProviderView = Schema.Struct({
  name: Schema.String,
  protocol: Schema.String,
  /** Without whatever in it might be secret; `null` where the catalogue names none, as of built-in engines. */
  baseUrl: Schema.NullOr(Schema.String),
  hasApiKey: Schema.Boolean,
  /** `always` or `neverSent`; see the catalogue. */
  redispatch: Schema.String,
  /** What the catalogue allows, by the names that it uses. */
  limits: Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.Boolean])),
  /** Calls of all workers since their start, by outcome: `success` or the error's tag. */
  calls: Schema.Record(Schema.String, Schema.Finite)
})
export type ProviderView = typeof ProviderView.Type

export const CatalogueView = Schema.Struct({
  models: Schema.Array(ModelView),
  providers: Schema.Array(ProviderView)
})
export type CatalogueView = typeof CatalogueView.Type

export const QueueView = Schema.Struct({
  workload: Workload,
  pool: Schema.String,
  /** Held back in ingress processes until the queue has room. */
  waiting: Schema.Int,
  /** In the queue, not given to a worker. */
  pending: Schema.Int,
  /** In the hands of workers. */
  ackPending: Schema.Int,
  redelivered: Schema.Int,
  /** How long the oldest of these has been in the queue, in milliseconds. */
  oldestMs: Schema.NullOr(Schema.Finite),
  slots: Schema.Int,
  inFlight: Schema.Int,
  workers: Schema.Int
})
export type QueueView = typeof QueueView.Type

export const ProcessView = Schema.Struct({
  id: Schema.String,
  service: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  startedAt: Schema.DateTimeUtcFromString,
  /** `silent`: answered within the last minutes, but not now: ended, frozen or cut off. */
  state: Schema.Literals(["starting", "ready", "draining", "silent"]),
  pool: Schema.NullOr(Schema.String),
  /** `null` for an ingress. */
  slots: Schema.NullOr(Schema.Int),
  inFlight: Schema.Int
})
export type ProcessView = typeof ProcessView.Type

export const FleetView = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  queues: Schema.Array(QueueView),
  processes: Schema.Array(ProcessView)
})
export type FleetView = typeof FleetView.Type

export class FleetApi extends HttpApiGroup.make("fleet")
  .add(
    HttpApiEndpoint.get("catalogue", "/api/models", { success: CatalogueView, error: Unavailable })
      .annotate(OpenApi.Summary, "The models, their targets, the providers, and how they are")
  )
  .add(
    HttpApiEndpoint.get("live", "/api/fleet", { success: FleetView, error: Unavailable })
      .annotate(OpenApi.Summary, "The queues and the processes as they are at this moment")
  )
  .middleware(Admin)
{}
