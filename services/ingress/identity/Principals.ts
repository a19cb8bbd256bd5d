/**
 * The owners of tokens: each has an id of its own, and settings like an API key's. Their records are in a bucket, so that every ingress
 * knows the owner of work that comes later, and the console whose id it is.
 */
import { Clock, Context, DateTime, Effect, Layer, Option } from "effect"
import { hash } from "node:crypto"
import { type Identity, principalOf } from "../../../shared/keys/Identity.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { defaults } from "../../../shared/keys/KeySettings.ts"
import * as PrincipalRecord from "../../../shared/keys/PrincipalRecord.ts"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../../../shared/nats/KeyValue.ts"
import { buckets } from "../../../shared/nats/Storage.ts"

/** How many records are kept in memory with their settings. */
const maxKnown = 10_000

export class Principals extends Context.Service<Principals, {
  /** The settings of a token's owner; `undefined` if the catalogue does not let it in. */
  readonly of: (identity: Identity, subject: string) => ApiKey | undefined
  /** Stores whose id it is, unless that is known. */
  readonly add: (identity: Identity, subject: string) => Effect.Effect<void, JetStreamFailed>
  /** The same by an id, for work that was asked for earlier. */
  readonly find: (id: string) => ApiKey | undefined
}>()("services/ingress/Principals") {
  /** Waits until the copy of the records is complete. */
  static readonly layer = Layer.effect(
    Principals,
    Effect.gen(function*() {
      const models = yield* Models
      const clock = yield* Clock.Clock
      const bucket = yield* openBucket(buckets.principals).pipe(Effect.retry(whileJetStreamFails))
      const records = yield* mirrorBucket(
        bucket,
        ({ value }) => Option.getOrUndefined(Option.flatMap(value, PrincipalRecord.decode))
      )
      /** By identity, which every edit of the catalogue replaces, and by id. */
      const known = new WeakMap<Identity, Map<string, ApiKey>>()

      const of = (identity: Identity, subject: string): ApiKey | undefined => {
        const id = idOf(identity, subject)
        let keys = known.get(identity)
        if (keys === undefined) known.set(identity, keys = new Map())
        const found = keys.get(id)
        if (found !== undefined) return found
        const principal = principalOf(identity, subject)
        if (principal === undefined) return undefined
        const { match: _, ...settings } = principal
        const key: ApiKey = {
          ...defaults,
          ...settings,
          ...{ id, owner: id, name: subject.slice(0, 200), createdAt: DateTime.makeUnsafe(0), editedAt: null }
        }
        const [oldest] = keys.keys()
        if (keys.size >= maxKnown && oldest !== undefined) keys.delete(oldest)
        keys.set(id, key)
        return key
      }

      return Principals.of({
        of,
        add: (identity, subject) => {
          const { issuer } = identity
          const id = idOf(identity, subject)
          if (records().has(id)) return Effect.void
          const record = { issuer, subject, firstSeen: clock.currentTimeMillisUnsafe() }
          return Effect.asVoid(bucket.create(id, PrincipalRecord.encode(record)))
        },
        find: (id) => {
          const record = records().get(id)
          const identity = Object.values(models.current().identities ?? {}).find((one) => one.issuer === record?.issuer)
          return record === undefined || identity === undefined ? undefined : of(identity, record.subject)
        }
      })
    })
  )
}

/** The same for every token of an owner: 132 bits, which tell neither the issuer nor the claim. */
export const idOf = ({ issuer }: Identity, subject: string): string =>
  `${PrincipalRecord.prefix}${hash("sha256", `${issuer}\0${subject}`, "base64url").slice(0, 22)}`
