/** Compactions made by this gateway: sealed for their clients, and stored under the answer's id until they expire. */
import { Array, Context, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openStore } from "../../../shared/nats/ObjectStore.ts"
import { stores } from "../../../shared/nats/Storage.ts"
import { type JobError, orUnavailable } from "../../../shared/contract/JobError.ts"
import { isDiscarded, type Owner } from "../../../shared/contract/Owner.ts"
import { isResponseId } from "../../../shared/contract/ResponseId.ts"
import * as Seal from "../../../shared/records/Seal.ts"
import { deriveKeys } from "../../../shared/secrets/GatewaySecret.ts"
import * as FormerSeal from "./FormerSeal.ts"

/** The items of an answer's `output`. */
const Output = Schema.fromJsonString(Schema.Array(Schema.Unknown))
const encodeOutput = Schema.encodeSync(Output)
const decodeOutput = Schema.decodeUnknownOption(Output)

/** The request that seals or opens. */
export interface Requester {
  readonly tenant: string
  readonly owner?: Owner | undefined
}

export class Compactions extends Context.Service<Compactions, {
  /** Seals a text. `id` is the id of the answer under which it is stored, if it is stored. */
  readonly seal: (requester: Requester, text: string, id?: string) => string
  /** `None` if the text was changed, or sealed for another owner or id. */
  readonly open: (requester: Requester, sealed: string, id?: string) => Option.Option<string>
  /** Seals and stores an answer's output, unless the answer is discarded. Fails with `Unavailable` while the store is unavailable. */
  readonly keep: (requester: Requester, id: string, output: ReadonlyArray<unknown>) => Effect.Effect<void, JobError>
  /** The output of an earlier answer; `None` if it is unknown, expired or another owner's. */
  readonly find: (requester: Requester, id: string) => Effect.Effect<Option.Option<ReadonlyArray<unknown>>, JobError>
}>()("services/chat/state/Compactions") {
  static readonly layer = Layer.effect(
    Compactions,
    Effect.gen(function*() {
      const sealing = yield* Seal.fromSecret
      const former = FormerSeal.make(Array.map(yield* deriveKeys("compaction"), Redacted.value))
      const store = yield* openStore(stores.compactions).pipe(
        Effect.retry(whileJetStreamFails)
      )
      const placeOf = (owner: Owner, id: string): Seal.Place => ({ owner, kind: "compaction", id, page: 0 })
      const seal = ({ owner, tenant }: Requester, text: string, id = "") =>
        owner === undefined ? former.seal(tenant, text) : Seal.sealText(sealing, placeOf(owner, id), text)
      const open = ({ owner, tenant }: Requester, sealed: string, id = "") => {
        const found = owner === undefined ? Option.none() : Seal.openText(sealing, placeOf(owner, id), sealed)
        return found.pipe(
          Option.orElse(() => former.open(tenant, sealed)),
          // an owner has the id of its first key
          Option.orElse(() => owner === undefined ? Option.none() : former.open(owner.id, sealed))
        )
      }
      return Compactions.of({
        seal,
        open,
        keep: (requester, id, output) =>
          isDiscarded(requester)
            ? Effect.void
            : orUnavailable(store.put(id, Stream.make(Buffer.from(seal(requester, encodeOutput(output), id))))),
        find: Effect.fn("Compactions.find")(function*(requester, id) {
          if (!isResponseId(id)) return Option.none()
          const kept = yield* orUnavailable(store.get(id))
          return kept.pipe(
            Option.flatMap((bytes) => open(requester, Buffer.from(bytes).toString(), id)),
            Option.flatMap(decodeOutput)
          )
        })
      })
    })
  )
}
