/** Handlers of `/api/session` and `/api/sign-in`. */
import { Config, Effect, Option, Redacted } from "effect"
import { HttpEffect } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AdminToken } from "../access/AdminToken.ts"
import { CurrentAdmin } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { TokenWrong } from "../api/Errors.ts"
import { TokenThrottle } from "../access/TokenThrottle.ts"
import { orUnavailable } from "../access/Availability.ts"
import { OidcSettings } from "../access/OidcSettings.ts"
import * as SessionCookie from "../access/SessionCookie.ts"
import { Sessions } from "../access/Sessions.ts"
import { handleAll } from "../access/Narrowed.ts"
import { OpenIdProvider } from "../signin/OpenIdProvider.ts"

/** Reads `GATEWAY_PUBLIC_URL` (default `http://127.0.0.1:8080`) and `CONSOLE_PUBLIC_URL`. */
export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "session",
  Effect.fn(function*(handlers) {
    const sessions = yield* Sessions
    const token = yield* AdminToken
    const attempts = yield* TokenThrottle
    const settings = yield* OidcSettings
    const provider = yield* OpenIdProvider
    const gatewayUrl = yield* Config.String("GATEWAY_PUBLIC_URL").pipe(Config.withDefault("http://127.0.0.1:8080"))
    const cookies = yield* SessionCookie.make

    /** The token holder's name in the audit log. The suffix distinguishes it from people who signed in with the provider. */
    const nameOf = (given: string) => Option.isNone(settings) ? given : `${given} (admin token)`

    /** Where a browser ends the session at the provider, too. Sign-out succeeds without it. */
    const providerUrl = Effect.fnUntraced(function*(idToken: string | null) {
      if (Option.isNone(provider)) return Option.none()
      return yield* provider.value.signOutUrl(idToken).pipe(
        Effect.catch(({ detail }) =>
          Effect.as(Effect.logWarning("the OpenID provider does not say where to sign out", { detail }), Option.none())
        )
      )
    })

    return handleAll("session", handlers, {
      ways: () =>
        Effect.succeed({
          adminToken: token.isEnabled,
          provider: Option.getOrNull(Option.map(settings, ({ name }) => name))
        }),
      current: () => Effect.map(CurrentAdmin, (admin) => ({ ...admin, gatewayUrl })),
      signIn: Effect.fnUntraced(function*({ payload }) {
        const given = Redacted.make(payload.token)
        if (!(yield* attempts.check(() => token.matches(given)))) return yield* new TokenWrong()
        const person = { name: nameOf(payload.name ?? "admin"), role: "admin", teams: [] } as const
        const begun = yield* orUnavailable(sessions.begin(person, null))
        yield* HttpEffect.appendPreResponseHandler((_, response) => Effect.succeed(cookies.set(begun)(response)))
      }),
      signOut: Effect.fnUntraced(function*() {
        const { session } = yield* CurrentAdmin
        const ended = session === null ? Option.none() : yield* orUnavailable(sessions.end(session))
        yield* HttpEffect.appendPreResponseHandler((_, response) => Effect.succeed(cookies.expire(response)))
        const ofProvider = Option.flatMapNullishOr(ended, ({ provider }) => provider)
        if (Option.isNone(ofProvider)) return
        const url = yield* providerUrl(ofProvider.value.idToken)
        return Option.isSome(url) ? { providerUrl: url.value } : undefined
      })
    })
  })
)
