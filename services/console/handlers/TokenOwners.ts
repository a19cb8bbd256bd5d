/** The owners of tokens that ingress has accepted in place of API keys. */
import { Context, Effect, Layer, Option } from "effect"
import * as PrincipalRecord from "../../../shared/keys/PrincipalRecord.ts"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { buckets } from "../../../shared/nats/Storage.ts"

type TokenOwner = PrincipalRecord.PrincipalRecord & { readonly id: string }

export class TokenOwners extends Context.Service<TokenOwners, {
  /** At most `count`, newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<TokenOwner>, JetStreamFailed>
}>()("services/console/handlers/TokenOwners") {
  static readonly layer = Layer.effect(
    TokenOwners,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.principals).pipe(Effect.retry(whileJetStreamFails))
      return TokenOwners.of({
        latest: (count) =>
          Effect.map(bucket.entries, (entries) =>
            entries
              .flatMap(({ key: id, value }) =>
                Option.toArray(
                  Option.map(Option.flatMap(value, PrincipalRecord.decode), (record) => ({ id, ...record }))
                )
              )
              .toSorted((a, b) => b.firstSeen - a.firstSeen)
              .slice(0, count))
      })
    })
  )
}
