/** `/api/session` and `/api/sign-in`: sign-in, the ways to sign in, the current session, and sign-out. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
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

/** How people can sign in. */
const SignInWays = Schema.Struct({
  adminToken: Schema.Boolean,
  /** The name of the OpenID provider; `null` if none is configured. */
  provider: Schema.NullOr(Schema.String)
})

/** The person's session at the OpenID provider continues after this sign-out. */
const ProviderSignOut = Schema.Struct({
  /** The URL at which the browser ends that session. */
  providerUrl: Schema.String
})

export class SessionApi extends HttpApiGroup.make("session")
  .add(
    HttpApiEndpoint.get("ways", "/api/sign-in", { success: SignInWays })
      .annotate(OpenApi.Summary, "List the ways to sign in"),
    HttpApiEndpoint.get("current", "/api/session", { success: SessionView })
      .middleware(Admin)
      .annotate(OpenApi.Summary, "Get the current session: who signed in, with which role and teams"),
    HttpApiEndpoint.delete("signOut", "/api/session", { success: [ProviderSignOut, HttpApiSchema.NoContent] })
      .middleware(Admin)
      .annotate(
        OpenApi.Summary,
        "Sign out. Every copy of the session's cookie becomes invalid. After a 200, open the answer's URL to sign out at the OpenID provider, too"
      ),
    HttpApiEndpoint.post("signIn", "/api/session", {
      payload: SignIn,
      error: [TokenWrong, TooManyAttempts, Unavailable]
    }).annotate(OpenApi.Summary, "Sign in with the admin token. Sets the session cookie")
  )
{}
