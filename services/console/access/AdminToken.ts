/** The token with which administrators sign in. */
import { Context, Effect, Layer, Option } from "effect"
import { configured, type Token, TokenUnusable } from "./Token.ts"

const variable = "CONSOLE_ADMIN_TOKEN"

export class AdminToken extends Context.Service<AdminToken, Token>()("services/console/AdminToken") {
  /** Reads `CONSOLE_ADMIN_TOKEN`. */
  static readonly layer = Layer.effect(
    AdminToken,
    Effect.flatMap(
      configured(variable),
      Option.match({
        onNone: () => Effect.fail(new TokenUnusable({ variable })),
        onSome: (token) => Effect.succeed(AdminToken.of(token))
      })
    )
  )
}
