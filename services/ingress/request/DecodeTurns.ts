/**
 * Bounds how many large bodies are decoded at once. A body's text takes two bytes per character as soon as one character is
 * beyond Latin-1, and the values decoded from it as much again: five times the body in all, which no budget of bodies counts.
 */
import { Context, Effect, Layer } from "effect"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Unavailable } from "../../../shared/contract/JobError.ts"

/** Smaller bodies are decoded without a turn. */
const largeBytes = 1024 * 1024

/** How long a body may wait for its turn, in milliseconds. Decoding the largest takes a fraction of a second. */
const withinMs = 10_000

/**
 * After so many bytes of large bodies the garbage is collected. V8 on its own lets the heap grow to several times what it last
 * found alive, bodies included: more than the pod has. A collection takes less time than decoding so much.
 */
const collectAfterBytes = 32 * 1024 * 1024

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
    const collect = collector()
    let decoded = 0
    const release = (bytes: number) =>
      Effect.suspend(() => {
        decoded += bytes
        if (decoded >= collectAfterBytes) {
          decoded = 0
          // by then the request has been admitted, and its decoded body is garbage, too
          setImmediate(collect)
        }
        return turns.release(1)
      })
    return DecodeTurns.of({
      inTurn: (tenant, bytes, decode) =>
        bytes < largeBytes ? decode() : Effect.uninterruptibleMask((restore) =>
          restore(turns.take(tenant, 1)).pipe(
            Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.fail(tooBusy) }),
            Effect.andThen(Effect.ensuring(restore(Effect.suspend(decode)), release(bytes)))
          )
        )
    })
  })
}

/** V8's own function, which it shows to contexts that are made after the flag is set. */
const collector = (): () => void => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
}
