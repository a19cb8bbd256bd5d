/**
 * The effect that runs before a call that must not be made twice: it tells ingress not to dispatch the job to another worker from now
 * on.
 *
 * Each transport runs the effect just before it sends, after it has waited for every limit and for a connection. The effect may run more
 * than once. By default it does nothing.
 */
import { Context, Effect } from "effect"
import type { Cancelled } from "../../contract/JobError.ts"

export type Commit = Effect.Effect<void, Cancelled>

export const none: Commit = Effect.void

export const Commitment = Context.Reference<Commit>("shared/provider/transport/Commitment", {
  defaultValue: () => none
})
