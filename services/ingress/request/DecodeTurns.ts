/**
 * Decodes one large body at a time. Decoding may take five times a body's size, which the body budget does not count: if any
 * character is beyond Latin-1, the text takes two bytes per character, and the decoded values take as much again.
 */
import { Context, Effect, Layer } from "effect"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Unavailable } from "../../../shared/contract/JobError.ts"

/** Smaller bodies do not wait for a turn. */
const largeBytes = 1024 * 1024

/** How long a body may wait for its turn, in milliseconds. Decoding the largest takes a fraction of a second. */
const withinMs = 10_000

/**
 * Garbage is collected after this many bytes of large bodies. V8 by itself lets the heap, bodies included, grow to several
 * times its live size: more than the pod's memory. A collection takes less time than decoding this many bytes.
 */
const collectAfterBytes = 32 * 1024 * 1024

const tooBusy = Unavailable.briefly()

export class DecodeTurns extends Context.Service<DecodeTurns, {
  /**
   * Decodes a body of this size when its turn comes. Turns alternate between tenants. An interruption takes effect immediately, also
   * while the body waits. Fails with `Unavailable` if the turn does not come within ten seconds.
   */
  readonly inTurn: <A, E>(
    tenant: string,
    bytes: number,
    decode: () => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | Unavailable>
}>()("services/ingress/request/DecodeTurns") {
  static readonly layer = Layer.sync(DecodeTurns, () => {
    const turns = PartitionedSemaphore.makeUnsafe<string>({ permits: 1 })
    const collect = makeCollector()
    let decoded = 0
    const count = (bytes: number) =>
      Effect.sync(() => {
        decoded += bytes
        if (decoded < collectAfterBytes) return
        decoded = 0
        // later, when the request has been admitted and its decoded body is garbage, too
        setImmediate(collect)
      })
    return DecodeTurns.of({
      inTurn: (tenant, bytes, decode) =>
        bytes < largeBytes ? decode() : Effect.suspend(() => {
          let hasTurn = false
          const decoding = Effect.suspend(() => {
            hasTurn = true
            return Effect.ensuring(decode(), count(bytes))
          })
          const tooLate = Effect.suspend(() => hasTurn ? Effect.never : Effect.fail(tooBusy))
          // the semaphore takes back a turn whose body has left meanwhile
          return Effect.raceFirst(turns.withPermit(tenant)(decoding), Effect.delay(tooLate, withinMs))
        })
    })
  })
}

/** V8 provides `gc` in contexts created after the flag is set. */
const makeCollector = (): () => void => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
}
