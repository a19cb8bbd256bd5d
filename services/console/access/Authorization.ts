/** Authenticates requests to the admin API by session cookie or admin token. API keys are not accepted. */
import { Effect, Layer, Option, Redacted, Result, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { AdminToken } from "./AdminToken.ts"
import { Admin, CurrentAdmin } from "../api/Admin.ts"
import { NotSignedIn, Unavailable } from "../api/Errors.ts"
import { TokenThrottle } from "./TokenThrottle.ts"
import { orUnavailable } from "./Availability.ts"
import { Sessions } from "./Sessions.ts"

const unavailable = HttpServerResponse.jsonUnsafe(Schema.encodeSync(Unavailable)(new Unavailable()), { status: 503 })

export const layer = Layer.effect(
  Admin,
  Effect.gen(function*() {
    const sessions = yield* Sessions
    const token = yield* AdminToken
    const attempts = yield* TokenThrottle
    return Admin.of({
      session: Effect.fnUntraced(function*(handler, { credential }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        const session = yield* Effect.result(orUnavailable(sessions.find(credential)))
        // a response instead of a failure, after which Effect would try the token and report `NotSignedIn`
        if (Result.isFailure(session)) return unavailable
        if (Option.isNone(session.success)) return yield* new NotSignedIn()
        const { expiresAt, id, name } = session.success.value
        return yield* Effect.provideService(handler, CurrentAdmin, { name, session: { id, expiresAt } })
      }),
      token: Effect.fnUntraced(function*(handler, { credential }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        if (!(yield* attempts.check(() => token.matches(credential)))) return yield* new NotSignedIn()
        return yield* Effect.provideService(handler, CurrentAdmin, { name: "admin token", session: null })
      })
    })
  })
)
