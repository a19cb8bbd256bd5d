/**
 * Sessions of administrators: a signed cookie in the browser and a record in NATS. The signature prevents forgery, and the
 * cookie is invalid once the record is deleted by sign-out or expiry.
 */
import { Clock, Context, DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { hash, randomBytes } from "node:crypto"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as Signer from "../../../shared/secrets/Signer.ts"
import { AdminToken } from "./AdminToken.ts"

const Session = Schema.Struct({
  /** Public: the cookie cannot be derived from it. */
  id: Schema.String,
  name: Schema.String,
  expiresAt: Schema.DateTimeUtcFromString
})
export type Session = typeof Session.Type

const encode = Schema.encodeSync(Schema.fromJsonString(Session))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Session))

/** Lifetime of a session. */
export const lifetimeMs = buckets.consoleSessions.ttlMs

export class Sessions extends Context.Service<Sessions, {
  /** Starts a session. Only this result contains the cookie's value. */
  readonly begin: (
    name: string
  ) => Effect.Effect<{ readonly session: Session; readonly cookie: Redacted.Redacted }, JetStreamFailed>
  /** The session of a valid cookie. */
  readonly find: (cookie: Redacted.Redacted) => Effect.Effect<Option.Option<Session>, JetStreamFailed>
  readonly end: (session: { readonly id: string }) => Effect.Effect<void, JetStreamFailed>
}>()("services/console/Sessions") {
  /** Reads `GATEWAY_SECRET`. */
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function*() {
      const signer = yield* Signer.make("console-session")
      // a new admin token invalidates the sessions of the old one
      const { fingerprint } = yield* AdminToken
      const bucket = yield* Effect.retry(openBucket(buckets.consoleSessions), whileJetStreamFails)
      const signedContent = (text: string) => Buffer.concat([fingerprint, Buffer.from(text)])
      const idOf = (secret: string) => hash("sha256", secret, "hex").slice(0, 16)

      return Sessions.of({
        begin: Effect.fn("Sessions.begin")(function*(name) {
          const now = yield* Clock.currentTimeMillis
          const expires = Math.floor((now + lifetimeMs) / 1_000)
          const secret = randomBytes(24).toString("base64url")
          const session = { id: idOf(secret), name, expiresAt: DateTime.makeUnsafe(expires * 1_000) }
          yield* bucket.put(session.id, encode(session))
          const text = `${secret}.${expires}`
          return { session, cookie: Redacted.make(`${text}.${signer.sign(signedContent(text))}`) }
        }),
        find: Effect.fn("Sessions.find")(function*(cookie) {
          const [, text = "", secret = "", expires = "", signature = ""] = pattern.exec(Redacted.value(cookie)) ?? []
          if (!signer.isSigned(signedContent(text), signature)) return Option.none()
          if (Number(expires) * 1_000 <= (yield* Clock.currentTimeMillis)) return Option.none()
          return Option.flatMap(yield* bucket.get(idOf(secret)), decode)
        }),
        end: ({ id }) => bucket.delete(id)
      })
    })
  )
}

/** 24 random bytes, the expiry in seconds since the epoch, and the signature of both. */
const pattern = /^(([\w-]{32})\.(\d{1,12}))\.([\w-]{43})$/
