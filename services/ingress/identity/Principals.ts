/**
 * The owners of tokens. Each has an id, and settings like those of an API key. Their records are in a bucket, so that every ingress
 * finds the owner of work that runs later, and the console shows to whom and to which team an id belongs.
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

export interface Owner {
  /** The settings. */
  readonly key: ApiKey
  readonly issuer: string
  readonly subject: string
}

export class Principals extends Context.Service<Principals, {
  /** A token's owner; `undefined` if no principal in the catalogue matches it. */
  readonly of: (identity: Identity, subject: string) => Owner | undefined
  /** An owner by id, for work that was requested earlier. */
  readonly find: (id: string) => Owner | undefined
  /** Stores the owner's record, unless it is known to be stored. */
  readonly add: (owner: Owner) => Effect.Effect<void, JetStreamFailed>
}>()("services/ingress/identity/Principals") {
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
      /** Owners by identity and id. Every edit of the catalogue replaces the identities. */
      const known = new WeakMap<Identity, Map<string, Owner>>()

      const of = (identity: Identity, subject: string): Owner | undefined => {
        const id = idOf(identity, subject)
        let owners = known.get(identity)
        if (owners === undefined) known.set(identity, owners = new Map())
        const found = owners.get(id)
        if (found !== undefined) return found
        const principal = principalOf(identity, subject)
        if (principal === undefined) return undefined
        const { issuer, team = null } = identity
        const { match: _, ...settings } = principal
        const key: ApiKey = {
          ...defaults,
          team,
          ...settings,
          ...{ id, owner: id, name: subject.slice(0, 200), createdAt: DateTime.makeUnsafe(0), editedAt: null }
        }
        const owner = { key, issuer, subject }
        const [oldest] = owners.keys()
        if (owners.size >= maxKnown && oldest !== undefined) owners.delete(oldest)
        owners.set(id, owner)
        return owner
      }

      return Principals.of({
        of,
        add: ({ issuer, key: { id, team }, subject }) => {
          const known = records().get(id)
          if (known?.team === team) return Effect.void
          const firstSeen = known?.firstSeen ?? clock.currentTimeMillisUnsafe()
          return bucket.put(id, PrincipalRecord.encode({ issuer, subject, team, firstSeen }))
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

/** The owner's id, which is the same for all its tokens: 132 bits that reveal neither the issuer nor the claim. */
export const idOf = ({ issuer }: Identity, subject: string): string =>
  `${PrincipalRecord.prefix}${hash("sha256", `${issuer}\0${subject}`, "base64url").slice(0, 22)}`
