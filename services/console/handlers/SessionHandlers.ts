/** Handlers of `/api/session`. */
import { Config, Effect, Redacted } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AdminToken } from "../access/AdminToken.ts"
import { cookieName, CurrentAdmin } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { TokenWrong } from "../api/Errors.ts"
import { TokenThrottle } from "../access/TokenThrottle.ts"
import { orUnavailable } from "../access/Availability.ts"
import * as PublicAddress from "../access/PublicAddress.ts"
import { lifetimeMs, Sessions } from "../access/Sessions.ts"

/** Reads `GATEWAY_PUBLIC_URL` (default `http://127.0.0.1:8080`) and `CONSOLE_PUBLIC_URL`. */
export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "session",
  Effect.fn(function*(handlers) {
    const sessions = yield* Sessions
    const token = yield* AdminToken
    const attempts = yield* TokenThrottle
    const gatewayUrl = yield* Config.String("GATEWAY_PUBLIC_URL").pipe(Config.withDefault("http://127.0.0.1:8080"))
    const isEncrypted = (yield* PublicAddress.configured).some((url) => url.protocol === "https:")
    const attributes = { path: "/", httpOnly: true, sameSite: "strict", secure: isEncrypted } as const

    return handlers.handleAll({
      current: () => Effect.map(CurrentAdmin, (admin) => ({ ...admin, gatewayUrl })),
      signIn: Effect.fnUntraced(function*({ payload }) {
        const given = Redacted.make(payload.token)
        if (!(yield* attempts.check(() => token.matches(given)))) return yield* new TokenWrong()
        const { cookie } = yield* orUnavailable(sessions.begin(payload.name ?? "admin"))
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setCookieUnsafe(response, cookieName, Redacted.value(cookie), {
            ...attributes,
            maxAge: lifetimeMs
          }))
        )
      }),
      signOut: Effect.fnUntraced(function*() {
        const { session } = yield* CurrentAdmin
        if (session !== null) yield* orUnavailable(sessions.end(session))
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.expireCookieUnsafe(response, cookieName, attributes))
        )
      })
    })
  })
)
