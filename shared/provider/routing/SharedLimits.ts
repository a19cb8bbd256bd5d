/**
 * The limits of providers that hold over all workers together. The worker service supplies the layer: `Limits` keeps its
 * ledgers on NATS, which this folder must run without. So only its types are imported here.
 */
import { Context } from "effect"
import type { Limits } from "../../limits/Limits.ts"

export class SharedLimits extends Context.Service<SharedLimits, Pick<Limits["Service"], "take" | "tryTake">>()(
  "shared/provider/SharedLimits"
) {}
