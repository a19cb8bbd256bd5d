/** The token with which administrators sign in. */
import { Context, Effect, Layer } from "effect"
import { configured, type Token, TokenUnusable } from "./Token.ts"

const variable = "CONSOLE_ADMIN_TOKEN"

export class AdminToken extends Context.Service<AdminToken, Token>()("services/console/AdminToken") {
  /** Reads `CONSOLE_ADMIN_TOKEN`. */
  static readonly layer = Layer.effect(
    AdminToken,
    Effect.flatMap(configured(variable), (token) => Effect.fromOption(token, () => new TokenUnusable({ variable })))
  )
}
