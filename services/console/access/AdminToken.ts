/** The token with which administrators sign in, unless an OpenID provider takes its place. */
import { Config, Context, Effect, Layer, Option, Schema } from "effect"
import { randomBytes } from "node:crypto"
import { OidcSettings } from "./OidcSettings.ts"
import { configured, type Token, TokenUnusable } from "./Token.ts"

const variable = "CONSOLE_ADMIN_TOKEN"

/** There is no way to sign in. */
class NoSignIn extends Schema.TaggedError<NoSignIn>()("NoSignIn", {}) {
  override readonly message = "CONSOLE_ADMIN_TOKEN_ENABLED may be false only if CONSOLE_OIDC_ISSUER is set"
}

/** A disabled token: it matches nothing, and no session belongs to it. */
const disabled = Effect.sync(() => ({ isEnabled: false, matches: () => false, fingerprint: randomBytes(32) }))

export class AdminToken extends Context.Service<
  AdminToken,
  Token & {
    readonly isEnabled: boolean
  }
>()("services/console/access/AdminToken") {
  /** Reads `CONSOLE_ADMIN_TOKEN` and `CONSOLE_ADMIN_TOKEN_ENABLED` (default true). */
  static readonly layer = Layer.effect(
    AdminToken,
    Effect.gen(function*() {
      if (!(yield* Config.Boolean("CONSOLE_ADMIN_TOKEN_ENABLED").pipe(Config.withDefault(true)))) {
        return Option.isNone(yield* OidcSettings) ? yield* new NoSignIn() : yield* disabled
      }
      const token = yield* configured(variable)
      return { isEnabled: true, ...(yield* Effect.fromOption(token, () => new TokenUnusable({ variable }))) }
    })
  )
}
