/** Who may use the admin API: whoever signed in with the admin token, or sends it with the request. */
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { NotSignedIn, TooManyAttempts, Unavailable } from "./Errors.ts"

export const cookieName = "gateway_console"

/** Has to be on every request of a page: no form of another site can send it. */
export const pageHeader = "x-gateway-console"

/** The API key that the playground uses. */
export const keyHeader = "x-gateway-key"

export const AdminView = Schema.Struct({
  /** As given at sign-in. It names whoever it was in the log of changes, and proves nothing. */
  name: Schema.String,
  /** `null` for a request that brought the token itself. */
  session: Schema.NullOr(Schema.Struct({ id: Schema.String, expiresAt: Schema.DateTimeUtcFromString }))
})
export type AdminView = typeof AdminView.Type

export class CurrentAdmin extends Context.Service<CurrentAdmin, AdminView>()("services/console/CurrentAdmin") {}

/** @effect-expect-leaking HttpServerRequest | ParsedSearchParams | RouteContext */
export class Admin extends HttpApiMiddleware.Service<Admin, { provides: CurrentAdmin }>()("services/console/Admin", {
  security: {
    session: HttpApiSecurity.apiKey({ in: "cookie", key: cookieName }),
    token: HttpApiSecurity.bearer
  },
  error: [NotSignedIn, TooManyAttempts, Unavailable]
}) {}
