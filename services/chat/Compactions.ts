/** Compactions made by this gateway: sealed for their clients, and kept for a while under the id of the answer. */
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { whileJetStreamFails } from "../../shared/nats/JetStream.ts"
import { openStore } from "../../shared/nats/ObjectStore.ts"
import { stores } from "../../shared/nats/Storage.ts"
import { type JobError, Unavailable } from "../../shared/contract/JobError.ts"
import { deriveKey } from "../../shared/secrets/GatewaySecret.ts"
import * as Seal from "./Seal.ts"

const idPattern = /^resp_[0-9a-f]{32}$/

/** The items of an answer's `output`. */
const Output = Schema.fromJsonString(Schema.Array(Schema.Unknown))
const encodeOutput = Schema.encodeSync(Output)
const decodeOutput = Schema.decodeUnknownOption(Output)

const unavailable = () => new Unavailable({ retryAfterMs: 1_000 })

export class Compactions extends Context.Service<Compactions, {
  readonly seal: Seal.Seal
  /** Seals and stores an answer's output for its tenant. Fails with `Unavailable` while the store is unavailable. */
  readonly keep: (tenant: string, id: string, output: ReadonlyArray<unknown>) => Effect.Effect<void, JobError>
  /** The output of an earlier answer; `None` if it is unknown, expired or another tenant's. */
  readonly find: (tenant: string, id: string) => Effect.Effect<Option.Option<ReadonlyArray<unknown>>, JobError>
}>()("services/chat/Compactions") {
  static readonly layer = Layer.effect(
    Compactions,
    Effect.gen(function*() {
      const seal = Seal.make(Redacted.value(yield* deriveKey("compaction")))
      const store = yield* openStore(stores.compactions).pipe(
        Effect.retry(whileJetStreamFails)
      )
      return Compactions.of({
        seal,
        keep: (tenant, id, output) =>
          store.put(id, Buffer.from(seal.seal(tenant, encodeOutput(output)))).pipe(Effect.mapError(unavailable)),
        find: Effect.fn("Compactions.find")(function*(tenant, id) {
          if (!idPattern.test(id)) return Option.none()
          const kept = yield* store.get(id).pipe(Effect.mapError(unavailable))
          return kept.pipe(
            Option.flatMap((bytes) => seal.open(tenant, Buffer.from(bytes).toString())),
            Option.flatMap(decodeOutput)
          )
        })
      })
    })
  )
}
