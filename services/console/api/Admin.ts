/** Authentication and authorization of the admin API: by a session cookie, or by the admin token as a bearer token. */
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { NotAllowed, NotSignedIn, TooManyAttempts, Unavailable } from "./Errors.ts"
import { Person } from "./Role.ts"

export const cookieName = "gateway_console"

/** Required on every request from a page. A form on another site cannot send it. */
export const pageHeader = "x-gateway-console"

/** Carries the playground's API key. */
export const keyHeader = "x-gateway-key"

export const AdminView = Schema.Struct({
  ...Person.fields,
  /** `null` if the request carried the token itself. */
  session: Schema.NullOr(Schema.Struct({ id: Schema.String, expiresAt: Schema.DateTimeUtcFromString }))
})
export type AdminView = typeof AdminView.Type

export class CurrentAdmin extends Context.Service<CurrentAdmin, AdminView>()("services/console/api/CurrentAdmin") {}

/** Whose data a request may read and change. */
export interface Scope {
  /** Whether nothing is left out. */
  readonly isWhole: boolean
  /** Whether what belongs to this team is within the scope; `null` or an empty text for what belongs to none. */
  readonly has: (team: string | null) => boolean
}

/** The scope of the request, to which handlers must narrow what they read and change. */
export class CurrentScope extends Context.Service<CurrentScope, Scope>()("services/console/api/CurrentScope") {}

/** @effect-expect-leaking HttpServerRequest | ParsedSearchParams | RouteContext */
export class Admin
  extends HttpApiMiddleware.Service<Admin, { provides: CurrentAdmin | CurrentScope }>()("services/console/api/Admin", {
    security: {
      session: HttpApiSecurity.apiKey({ in: "cookie", key: cookieName }),
      token: HttpApiSecurity.bearer
    },
    error: [NotSignedIn, NotAllowed, TooManyAttempts, Unavailable]
  })
{}
