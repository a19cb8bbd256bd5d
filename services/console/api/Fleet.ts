/** `/api/models` and `/api/fleet`: the catalogue, and the current state of queues and processes. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { workloads } from "../../../shared/contract/Operation.ts"
import { Admin } from "./Admin.ts"
import { Unavailable } from "./Errors.ts"

const Workload = Schema.Literals(workloads)

/** Number of workers per state of the circuit breaker of one provider and model. */
export const Circuits = Schema.Struct({ closed: Schema.Int, halfOpen: Schema.Int, open: Schema.Int })
export type Circuits = typeof Circuits.Type

/** Whose calls to a target workers delay or reject. */
export const DelayView = Schema.Struct({
  /** The key's id; `null` for all keys. */
  owner: Schema.NullOr(Schema.String),
  /** `refusals`: the provider has answered 429. `failures`: the circuit is not closed. */
  cause: Schema.Literals(["refusals", "failures"]),
  /** How long no call is sent at the worker that waits longest, in milliseconds; 0 if calls are sent at a limited rate. */
  forMs: Schema.Finite,
  /** How many calls all these workers send; `null` if their number is not limited. */
  perMinute: Schema.NullOr(Schema.Finite),
  /** The requests that wait at these workers. */
  waiting: Schema.Int,
  workers: Schema.Int,
  /** What the provider's latest 429 said is left of its limits, if it did. */
  requestsLeft: Schema.NullOr(Schema.Finite),
  tokensLeft: Schema.NullOr(Schema.Finite)
})
export type DelayView = typeof DelayView.Type

export const TargetView = Schema.Struct({
  provider: Schema.String,
  /** The model's name at the provider. */
  model: Schema.String,
  weight: Schema.Finite,
  priority: Schema.Int,
  /** Whether the catalogue switches off the target, its model or its provider. */
  isOff: Schema.Boolean,
  /** `null` if no worker has called the target yet. */
  circuits: Schema.NullOr(Circuits),
  /** Those of all keys come first, then those that last longest. */
  delays: Schema.Array(DelayView)
})
export type TargetView = typeof TargetView.Type

export const ModelView = Schema.Struct({
  name: Schema.String,
  workload: Workload,
  pool: Schema.String,
  targets: Schema.Array(TargetView),
  /** Ready workers of the model's pool. */
  workers: Schema.Int
})
export type ModelView = typeof ModelView.Type

export const ProviderView = Schema.Struct({
  name: Schema.String,
  protocol: Schema.String,
  /** The base URL without possible secrets; `null` if the catalogue has none, for example for built-in engines. */
  baseUrl: Schema.NullOr(Schema.String),
  hasApiKey: Schema.Boolean,
  /** Whether the gateway may call it again for a request that it may have received. */
  isIdempotent: Schema.Boolean,
  /** Limits by their names in the catalogue. */
  limits: Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.Boolean])),
  /** Calls by all workers since their start, by outcome: `success` or the error's tag. */
  calls: Schema.Record(Schema.String, Schema.Finite)
})
export type ProviderView = typeof ProviderView.Type

const CatalogueView = Schema.Struct({ models: Schema.Array(ModelView), providers: Schema.Array(ProviderView) })

export const QueueView = Schema.Struct({
  workload: Workload,
  pool: Schema.String,
  /** Jobs that ingress replicas hold until the queue has room. */
  waiting: Schema.Int,
  /** Jobs in the queue, not yet delivered to a worker. */
  pending: Schema.Int,
  /** Jobs delivered to workers and not yet acknowledged. */
  ackPending: Schema.Int,
  redelivered: Schema.Int,
  /** Age of the oldest job in the queue, in milliseconds. */
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
  /** `silent`: answered within the last minute but not now, because it was killed, froze or lost its connection. */
  state: Schema.Literals(["starting", "ready", "draining", "silent"]),
  pool: Schema.NullOr(Schema.String),
  /** `null` for an ingress. */
  slots: Schema.NullOr(Schema.Int),
  inFlight: Schema.Int
})
export type ProcessView = typeof ProcessView.Type

const FleetView = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  queues: Schema.Array(QueueView),
  processes: Schema.Array(ProcessView)
})

export class FleetApi extends HttpApiGroup.make("fleet")
  .add(
    HttpApiEndpoint.get("catalogue", "/api/models", { success: CatalogueView, error: Unavailable })
      .annotate(OpenApi.Summary, "List models, their targets, and providers with their health"),
    HttpApiEndpoint.get("live", "/api/fleet", { success: FleetView, error: Unavailable })
      .annotate(OpenApi.Summary, "Get the current state of queues and processes")
  )
  .middleware(Admin)
{}
