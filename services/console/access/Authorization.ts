/**
 * Authenticates requests to the admin API by session cookie or admin token, and authorizes them by the table of rights. API keys are
 * not accepted.
 */
import { Effect, Layer, Option, Redacted, Result, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { AdminToken } from "./AdminToken.ts"
import { Admin, CurrentAdmin, CurrentScope } from "../api/Admin.ts"
import { NotAllowed, NotSignedIn, Unavailable } from "../api/Errors.ts"
import { extentOf } from "../api/Rights.ts"
import { TeamTree } from "../../../shared/teams/TeamTree.ts"
import * as Scopes from "./Scopes.ts"
import { TokenThrottle } from "./TokenThrottle.ts"
import { orUnavailable } from "./Availability.ts"
import { Sessions } from "./Sessions.ts"

// responses, because after a failure Effect would try the token and report `NotSignedIn`
const unavailable = HttpServerResponse.jsonUnsafe(Schema.encodeSync(Unavailable)(new Unavailable()), { status: 503 })
const notAllowed = HttpServerResponse.jsonUnsafe(Schema.encodeSync(NotAllowed)(new NotAllowed()), { status: 403 })

export const layer = Layer.effect(
  Admin,
  Effect.gen(function*() {
    const sessions = yield* Sessions
    const token = yield* AdminToken
    const attempts = yield* TokenThrottle
    const tree = yield* TeamTree
    return Admin.of({
      session: Effect.fnUntraced(function*(handler, { credential, endpoint, group }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        const session = yield* Effect.result(orUnavailable(sessions.find(credential)))
        if (Result.isFailure(session)) return unavailable
        if (Option.isNone(session.success)) return yield* new NotSignedIn()
        const { expiresAt, id, name, role, teams } = session.success.value
        const extent = extentOf(role, group.identifier, endpoint.identifier)
        if (extent === "none") return notAllowed
        const scope = extent === "all" ? Scopes.everything : Scopes.ofTeams(tree.all(), teams)
        return yield* handler.pipe(
          Effect.provideService(CurrentScope, scope),
          Effect.provideService(CurrentAdmin, { name, role, teams, session: { id, expiresAt } })
        )
      }),
      token: Effect.fnUntraced(function*(handler, { credential }) {
        if (Redacted.value(credential) === "") return yield* new NotSignedIn()
        if (!(yield* attempts.check(() => token.matches(credential)))) return yield* new NotSignedIn()
        return yield* handler.pipe(
          Effect.provideService(CurrentScope, Scopes.everything),
          Effect.provideService(CurrentAdmin, { name: "admin token", role: "admin", teams: [], session: null })
        )
      })
    })
  })
)
