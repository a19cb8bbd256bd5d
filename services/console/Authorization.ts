/** Lets through to the admin API whoever has a session, or sends the admin token as a bearer. API keys are neither. */
import { Effect, Layer, Option, Redacted } from "effect"
import { AdminToken } from "./AdminToken.ts"
import { Admin, CurrentAdmin } from "./api/Admin.ts"
import { NotSignedIn } from "./api/Errors.ts"
import { Attempts } from "./Attempts.ts"
import { orUnavailable } from "./Availability.ts"
import { Sessions } from "./Sessions.ts"

export const layer = Layer.effect(
  Admin,
  Effect.gen(function*() {
    const sessions = yield* Sessions
    const token = yield* AdminToken
    const attempts = yield* Attempts
    return Admin.of({
      session: Effect.fnUntraced(function*(handler, { credential }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        const session = yield* orUnavailable(sessions.find(credential))
        if (Option.isNone(session)) return yield* new NotSignedIn()
        const { expiresAt, id, name } = session.value
        return yield* Effect.provideService(handler, CurrentAdmin, { name, session: { id, expiresAt } })
      }),
      token: Effect.fnUntraced(function*(handler, { credential }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        if (!(yield* attempts.judge(() => token.matches(credential)))) return yield* new NotSignedIn()
        return yield* Effect.provideService(handler, CurrentAdmin, { name: "admin token", session: null })
      })
    })
  })
)
