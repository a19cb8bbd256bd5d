/** The performer of workers that call simulated providers over HTTP: the shipped routing, limits, circuit breakers and client. */
import { Effect, Layer } from "effect"
import { ResultStore } from "../../../shared/provider/call/ResultStore.ts"
import { LocalEngines } from "../../../shared/provider/protocols/local/Local.ts"
import { Providers } from "../../../shared/provider/routing/Providers.ts"
import { Performer } from "../../../shared/worker/JobLife.ts"
import { layerOf } from "./Catalogue.ts"
import { portOf, providerNames } from "./HttpProvider.ts"
import { providerTools } from "./Tools.ts"

/** Short timeouts, and the usual circuit breakers. */
const settings = {
  protocol: "openai",
  timeouts: { firstByteMs: 2_000, idleMs: 4_000, totalMs: 60_000 },
  limits: { concurrency: 60 }
}

/** Two models of the same providers. Only the calls of the free one may be repeated. */
const kinds = [{ model: "paid", idempotent: false }, { model: "free", idempotent: true }]

const catalogue = layerOf(
  Object.fromEntries(kinds.flatMap(({ idempotent, model }) =>
    providerNames.map((name, at) => [
      `${name}-${model}`,
      { ...settings, idempotent, baseUrl: `http://127.0.0.1:${portOf(at)}/v1` }
    ])
  )),
  Object.fromEntries(kinds.map(({ model }) => [model, {
    workload: "chat",
    targets: providerNames.map((name, at) => ({ provider: `${name}-${model}`, priority: at }))
  }]))
)

export const routedPerformer = Layer.effect(
  Performer,
  Effect.map(
    Providers,
    ({ isIdempotent, perform }) => Performer.of({ isIdempotent, perform, cost: () => null, costInBatch: () => null })
  )
).pipe(
  Layer.provide(Providers.layer),
  Layer.provide([
    catalogue,
    providerTools,
    ResultStore.layerNone,
    Layer.succeed(LocalEngines, { performs: new Map() })
  ])
)
