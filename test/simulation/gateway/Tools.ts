/** The dependencies of simulated workers for calls to providers, as in `WorkerService.ts`. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Layer } from "effect"
import { Limits } from "../../../shared/limits/Limits.ts"
import { SharedLimits } from "../../../shared/provider/routing/SharedLimits.ts"
import { GuardedFetch } from "../../../shared/provider/transport/GuardedFetch.ts"
import { Secrets } from "../../../shared/provider/transport/Secrets.ts"
import { Upstream } from "../../../shared/provider/transport/Upstream.ts"

export const providerTools = Layer.mergeAll(
  Upstream.layer,
  GuardedFetch.layer,
  Secrets.layer.pipe(Layer.provide(NodeFileSystem.layer)),
  Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerProviders))
)
