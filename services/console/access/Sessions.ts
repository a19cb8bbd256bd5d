/**
 * Sessions of people: a signed cookie in the browser and a record in NATS. The signature prevents forgery, and the cookie is
 * invalid once the record is deleted by sign-out or expiry. A session is never extended, so that a person's groups are read again.
 */
import { Clock, Config, Context, DateTime, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { hash, randomBytes } from "node:crypto"
import { integer } from "../../../shared/contract/Fields.ts"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as Signer from "../../../shared/secrets/Signer.ts"
import { Person } from "../api/Role.ts"
import { AdminToken } from "./AdminToken.ts"
import { OidcSettings } from "./OidcSettings.ts"

/** The sign-in at the OpenID provider that a session comes from. */
const ProviderSession = Schema.Struct({
  /** The provider's identifier of the person. */
  subject: Schema.String,
  /** The provider's identifier of its session, if it has one. */
  sid: Schema.NullOr(Schema.String),
  /** Names the session when we ask the provider to end it; `null` if it is too long for a URL. */
  idToken: Schema.NullOr(Schema.String)
})
export type ProviderSession = typeof ProviderSession.Type

const Session = Schema.Struct({
  /** Public: the cookie cannot be derived from it. */
  id: Schema.String,
  ...Person.fields,
  expiresAt: Schema.DateTimeUtcFromString,
  /** `null` after a sign-in with the admin token. */
  provider: Schema.NullOr(ProviderSession)
})
export type Session = typeof Session.Type

const encode = Schema.encodeSync(Schema.fromJsonString(Session))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Session))

const hourMs = 60 * 60_000
const mostHours = buckets.consoleSessions.ttlMs / hourMs

export class Sessions extends Context.Service<Sessions, {
  /** Starts a session. Only this result contains the cookie's value. */
  readonly begin: (
    person: Person,
    provider: ProviderSession | null
  ) => Effect.Effect<{ readonly session: Session; readonly cookie: Redacted.Redacted }, JetStreamFailed>
  /** The session of a valid cookie. */
  readonly find: (cookie: Redacted.Redacted) => Effect.Effect<Option.Option<Session>, JetStreamFailed>
  /** Ends a session and returns it. */
  readonly end: (session: { readonly id: string }) => Effect.Effect<Option.Option<Session>, JetStreamFailed>
  /** Ends the sessions of a sign-in at the provider, or all of a person if it names none. Returns how many. */
  readonly endAll: (
    which: { readonly subject: string | undefined; readonly sid: string | undefined }
  ) => Effect.Effect<number, JetStreamFailed>
  /** Whether no console has seen this value during the longest lifetime of a session. */
  readonly isFirstUse: (value: string) => Effect.Effect<boolean, JetStreamFailed>
}>()("services/console/access/Sessions") {
  /** Reads `GATEWAY_SECRET` and `CONSOLE_SESSION_HOURS` (default 12, the maximum). */
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function*() {
      const signer = yield* Signer.make("console-session")
      const lifetimeMs = hourMs * (yield* Config.schema(integer(1, mostHours), "CONSOLE_SESSION_HOURS").pipe(
        Config.withDefault(mostHours)
      ))
      // a new admin token, or new settings of the provider, invalidate the sessions of the old ones
      const { fingerprint } = yield* AdminToken
      const ofProvider = Option.map(yield* OidcSettings, (settings) => settings.fingerprint)
      const fingerprints = [fingerprint, ...Option.toArray(ofProvider)]
      const bucket = yield* Effect.retry(openBucket(buckets.consoleSessions), whileJetStreamFails)
      const signedContent = (fingerprint: Uint8Array, text: string) => Buffer.concat([fingerprint, Buffer.from(text)])
      const idOf = (secret: string) => hash("sha256", secret, "hex").slice(0, 16)

      return Sessions.of({
        begin: Effect.fn("Sessions.begin")(function*(person, provider) {
          const now = yield* Clock.currentTimeMillis
          const expires = Math.floor((now + lifetimeMs) / 1_000)
          const secret = randomBytes(24).toString("base64url")
          const session = { id: idOf(secret), ...person, expiresAt: DateTime.makeUnsafe(expires * 1_000), provider }
          yield* bucket.put(session.id, encode(session))
          const text = `${secret}.${expires}`
          const signedWith = provider === null ? fingerprint : Option.getOrThrow(ofProvider)
          return { session, cookie: Redacted.make(`${text}.${signer.sign(signedContent(signedWith, text))}`) }
        }),
        find: Effect.fn("Sessions.find")(function*(cookie) {
          const [, text = "", secret = "", expires = "", signature = ""] = pattern.exec(Redacted.value(cookie)) ?? []
          const isSigned = fingerprints.some((one) => signer.isSigned(signedContent(one, text), signature))
          if (!isSigned) return Option.none()
          if (Number(expires) * 1_000 <= (yield* Clock.currentTimeMillis)) return Option.none()
          return Option.flatMap(yield* bucket.get(idOf(secret)), decode)
        }),
        end: Effect.fn("Sessions.end")(function*({ id }) {
          const session = Option.flatMap(yield* bucket.get(id), decode)
          yield* bucket.delete(id)
          return session
        }),
        endAll: Effect.fn("Sessions.endAll")(function*({ sid, subject }) {
          const isMeant = ({ provider }: Session): boolean => {
            if (provider === null || (sid === undefined && subject === undefined)) return false
            return (sid === undefined || provider.sid === sid) &&
              (subject === undefined || provider.subject === subject)
          }
          const meant = yield* bucket.matching(">").pipe(
            Stream.map(({ value }) => Option.filter(Option.flatMap(value, decode), isMeant)),
            Stream.filter(Option.isSome),
            Stream.map(({ value }) => value.id),
            Stream.runCollect
          )
          yield* Effect.forEach(meant, (id) => bucket.delete(id), { concurrency: 10, discard: true })
          return meant.length
        }),
        isFirstUse: (value) => bucket.create(`used-${hash("sha256", value, "hex")}`, "{}")
      })
    })
  )
}

/** 24 random bytes, the expiry in seconds since the epoch, and the signature of both. */
const pattern = /^(([\w-]{32})\.(\d{1,12}))\.([\w-]{43})$/
