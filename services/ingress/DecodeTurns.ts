/**
 * Bounds how many large bodies are decoded at once. A body's text takes two bytes per character as soon as one character is
 * beyond Latin-1, and the values decoded from it as much again: five times the body in all, which no budget of bodies counts.
 */
import { Context, Effect, Layer } from "effect"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import { Unavailable } from "../../shared/contract/JobError.ts"

/** Smaller bodies are decoded without a turn. */
const largeBytes = 1024 * 1024

/** How long a body may wait for its turn, in milliseconds. Decoding the largest takes a fraction of a second. */
const withinMs = 10_000

const tooBusy = new Unavailable({ retryAfterMs: 1_000 })

export class DecodeTurns extends Context.Service<DecodeTurns, {
  /** Decodes a body of so many bytes when it is its turn. Tenants take turns, whatever number of bodies each has. */
  readonly inTurn: <A, E>(
    tenant: string,
    bytes: number,
    decode: () => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | Unavailable>
}>()("services/ingress/DecodeTurns") {
  static readonly layer = Layer.sync(DecodeTurns, () => {
    const turns = PartitionedSemaphore.makeUnsafe<string>({ permits: 1 })
    return DecodeTurns.of({
      inTurn: (tenant, bytes, decode) =>
        bytes < largeBytes ? decode() : Effect.uninterruptibleMask((restore) =>
          restore(turns.take(tenant, 1)).pipe(
            Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.fail(tooBusy) }),
            Effect.andThen(Effect.ensuring(restore(Effect.suspend(decode)), turns.release(1)))
          )
        )
    })
  })
}
