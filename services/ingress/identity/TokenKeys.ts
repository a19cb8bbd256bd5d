/**
 * Accepts tokens of the catalogue's issuers in place of API keys. A token is verified once and then recognised by its hash until
 * it expires, so that later requests do not wait.
 */
import { Clock, Effect, Exit, Layer } from "effect"
import { hash } from "node:crypto"
import type { Identities, Identity } from "../../../shared/keys/Identity.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import { KeyRefused, KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as PrincipalRecord from "../../../shared/keys/PrincipalRecord.ts"
import * as IssuerKeys from "./IssuerKeys.ts"
import { type Owner, Principals } from "./Principals.ts"
import * as Token from "./Token.ts"

/** Maximum number of verified tokens in memory, at 300 bytes each. */
const maxTokens = 20_000

/** How long to wait for the record of an owner that is new, or that the catalogue has moved to another team, in milliseconds. */
const recordedWithinMs = 1_000

interface Known {
  readonly key: ApiKey
  /** All identities of the catalogue. Every edit replaces them. */
  readonly identities: Identities
  readonly expiresAt: number
}

/** The key ring of ingress, with the owners of tokens. */
export const layer = Layer.effect(
  KeyRing,
  Effect.gen(function*() {
    const keys = yield* KeyRing
    const models = yield* Models
    const principals = yield* Principals
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    /** By all that tells where the keys are: every edit of the catalogue replaces the identities, but their keys stay. */
    const sources = new Map<string, IssuerKeys.IssuerKeys>()
    const known = new Map<string, Known>()

    const refuse = (check: Token.TokenRefused["check"]): Effect.Effect<never, KeyRefused> =>
      Effect.fail(
        check === "unverifiable" ? new KeyRefused({ reason: check }) : new KeyRefused({ reason: "token", check })
      )

    const sourceOf = (identity: Identity) => {
      const { issuer, jwksFile, jwksUri } = identity
      const place = JSON.stringify([issuer, jwksUri, jwksFile])
      let source = sources.get(place)
      if (source === undefined) sources.set(place, source = IssuerKeys.make(identity, now))
      return source
    }

    const remember = (digest: string, token: Known) => {
      const [oldest] = known.keys()
      if (known.size >= maxTokens && oldest !== undefined) known.delete(oldest)
      known.set(digest, token)
    }

    /**
     * Stores the owner's record. Fails without it if the owner has a team, whose usage would not count. For other owners, only work
     * that runs later needs the record.
     */
    const record = (owner: Owner): Effect.Effect<void, KeyRefused> =>
      principals.add(owner).pipe(
        Effect.timeout(recordedWithinMs),
        Effect.catch(() =>
          Effect.andThen(
            Effect.logWarning("the owner of a token is not recorded yet", { id: owner.key.id }),
            owner.key.team === null ? Effect.void : refuse("unverifiable")
          )
        )
      )

    const verify = Effect.fnUntraced(function*(token: string, identities: Identities, digest: string) {
      const issuer = Token.issuerOf(token)
      const identity = Object.values(identities).find((one) => one.issuer === issuer)
      if (identity === undefined) return yield* refuse("iss")
      const verified = yield* Effect.tryPromise({
        try: () => Token.verify(token, identity, sourceOf(identity), now()),
        catch: (error) => error instanceof Token.TokenRefused ? error.check : "unverifiable"
      }).pipe(Effect.catch(refuse))
      if (verified.id !== undefined && identity.revoked?.includes(verified.id) === true) return yield* refuse("revoked")
      const owner = principals.of(identity, verified.subject)
      if (owner === undefined) return yield* refuse("principal")
      yield* record(owner)
      remember(digest, { key: owner.key, identities, expiresAt: verified.expiresAt })
      return owner.key
    })

    const enabled = (key: ApiKey): Effect.Effect<ApiKey, KeyRefused> =>
      key.disabled ? Effect.fail(new KeyRefused({ reason: "disabled" })) : Effect.succeed(key)

    const authenticate = (token: string, identities: Identities): Effect.Effect<ApiKey, KeyRefused> => {
      const digest = hash("sha256", token, "base64")
      const found = known.get(digest)
      if (found?.identities === identities && found.expiresAt > now()) return enabled(found.key)
      if (found !== undefined) known.delete(digest)
      return Effect.flatMap(verify(token, identities, digest), enabled)
    }

    return KeyRing.of({
      ...keys,
      authenticate: (secret) => {
        const found = keys.authenticate(secret)
        const { identities } = models.current()
        if (identities === undefined || !Token.isToken(secret)) return found
        // a key may have any shape
        return Exit.isExit(found) && Exit.isSuccess(found) ? found : authenticate(secret, identities)
      },
      find: (id) => {
        if (!id.startsWith(PrincipalRecord.prefix)) return keys.find(id)
        return Effect.suspend(() => {
          const owner = principals.find(id)
          if (owner === undefined) return Effect.fail(new KeyRefused({ reason: "unknown" }))
          return Effect.andThen(record(owner), enabled(owner.key))
        })
      }
    })
  })
)
