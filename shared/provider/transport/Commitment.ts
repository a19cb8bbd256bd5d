/**
 * What has to happen at the last moment before a provider is asked for something that must not be asked for twice: whoever
 * watches over the request is told, so that it knows what may still be given to somebody else.
 *
 * Everything that sends to a provider runs it just before it sends; by then there is a connection, and every limit has
 * been waited for. Where nobody watches it does nothing. May be run again.
 */
import { Context, Effect } from "effect"
import type { Cancelled } from "../../contract/JobError.ts"

export type Commit = Effect.Effect<void, Cancelled>

export const none: Commit = Effect.void

export const Commitment = Context.Reference<Commit>("shared/provider/Commitment", { defaultValue: () => none })
