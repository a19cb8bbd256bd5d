/** The token that an administrator signs in with. */
import { Config, Context, Effect, Layer, Redacted, Schema } from "effect"
import { hash, timingSafeEqual } from "node:crypto"

/** `CONSOLE_ADMIN_TOKEN` is missing or too short to be one. */
export class TokenUnusable extends Schema.TaggedError<TokenUnusable>()("TokenUnusable", {}) {
  override get message() {
    return "CONSOLE_ADMIN_TOKEN must be set to 24 or more random characters"
  }
}

const minimumLength = 24

const digest = (text: string): Buffer => hash("sha256", text, "buffer")

export class AdminToken extends Context.Service<AdminToken, {
  /** Takes as long for a token that is nearly right as for any other. */
  readonly matches: (given: Redacted.Redacted) => boolean
  /** Its SHA-256. */
  readonly fingerprint: Uint8Array
}>()("services/console/AdminToken") {
  /** Reads `CONSOLE_ADMIN_TOKEN`. */
  static readonly layer = Layer.effect(
    AdminToken,
    Effect.gen(function*() {
      const token = Redacted.value(yield* Config.Redacted("CONSOLE_ADMIN_TOKEN"))
      if (token.length < minimumLength) return yield* new TokenUnusable()
      const fingerprint = digest(token)
      return AdminToken.of({
        matches: (given) => timingSafeEqual(digest(Redacted.value(given)), fingerprint),
        fingerprint
      })
    }).pipe(Effect.catchTag("ConfigError", () => Effect.fail(new TokenUnusable())))
  )
}
