/** `/api/session`: sign-in, the current session, sign-out. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Admin, AdminView } from "./Admin.ts"
import { TokenWrong, TooManyAttempts, Unavailable } from "./Errors.ts"

export const SignIn = Schema.Struct({
  token: Schema.NonEmptyString.check(Schema.isMaxLength(1_024)),
  /** Name for the audit log. */
  name: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(80)))
})

export const SessionView = Schema.Struct({
  ...AdminView.fields,
  /** The gateway's base URL for clients. */
  gatewayUrl: Schema.String
})
export type SessionView = typeof SessionView.Type

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("current", "/api/session", { success: SessionView })
      .middleware(Admin)
      .annotate(OpenApi.Summary, "Get the current session"),
    HttpApiEndpoint.delete("signOut", "/api/session", {})
      .middleware(Admin)
      .annotate(OpenApi.Summary, "Sign out. Every copy of the session's cookie becomes invalid"),
    HttpApiEndpoint.post("signIn", "/api/session", {
      payload: SignIn,
      error: [TokenWrong, TooManyAttempts, Unavailable]
    }).annotate(OpenApi.Summary, "Sign in with the admin token. Sets the session cookie")
  )
{}
