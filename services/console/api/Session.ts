/** `/api/session`: to sign in, to be recognised, to sign out. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Admin, AdminView } from "./Admin.ts"
import { TokenWrong, TooManyAttempts, Unavailable } from "./Errors.ts"

export const SignIn = Schema.Struct({
  token: Schema.NonEmptyString.check(Schema.isMaxLength(1_024)),
  /** Who it is, for the log of changes. */
  name: Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(80)))
})

export const SessionView = Schema.Struct({
  ...AdminView.fields,
  /** The gateway's root, as its clients know it. */
  gatewayUrl: Schema.String
})
export type SessionView = typeof SessionView.Type

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("current", "/api/session", { success: SessionView })
      .middleware(Admin)
      .annotate(OpenApi.Summary, "Who is signed in")
  )
  .add(
    HttpApiEndpoint.delete("signOut", "/api/session", {})
      .middleware(Admin)
      .annotate(OpenApi.Summary, "Sign out: the session is over, wherever its cookie may be")
  )
  .add(
    HttpApiEndpoint.post("signIn", "/api/session", {
      payload: SignIn,
      error: [TokenWrong, TooManyAttempts, Unavailable]
    }).annotate(OpenApi.Summary, "Sign in with the admin token: sets the session's cookie")
  )
{}
