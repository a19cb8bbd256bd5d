/** `/sign-in/…`: sign-in with the OpenID provider, and the provider's notice that a person has signed out. */
import { Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse, UrlParams } from "effect/http"
import { orUnavailable } from "../access/Availability.ts"
import * as GroupRoles from "../access/GroupRoles.ts"
import { OidcSettings } from "../access/OidcSettings.ts"
import * as SessionCookie from "../access/SessionCookie.ts"
import { Sessions } from "../access/Sessions.ts"
import { callbackPath, type Problem, problemPath, signedOutPath, startPath } from "../api/SignIn.ts"
import * as Attempts from "./Attempts.ts"
import { OpenIdProvider } from "./OpenIdProvider.ts"

const redirect = (to: string | URL) => HttpServerResponse.redirect(to, { status: 303 })

const queryOf = (url: string): string => {
  const at = url.indexOf("?")
  return at < 0 ? "" : url.slice(at + 1)
}

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const settings = yield* OidcSettings
  const configured = yield* OpenIdProvider
  if (Option.isNone(settings) || Option.isNone(configured)) return
  const { roles } = settings.value
  const provider = configured.value
  const sessions = yield* Sessions
  const attempts = yield* Attempts.make
  const sessionCookie = yield* SessionCookie.make

  const failed = (problem: Problem, detail: string) =>
    Effect.as(
      Effect.logWarning("a sign-in with the OpenID provider failed", { problem, detail }),
      redirect(problemPath(problem))
    )
  const onProviderFailed = {
    ProviderFailed: ({ detail, problem }: { detail: string; problem: Problem }) => failed(problem, detail)
  }

  const start = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
    const to = new URLSearchParams(queryOf(request.url)).get("to") ?? "/"
    const { proof, setCookie } = yield* attempts.begin(to)
    return setCookie(redirect(yield* provider.authorizationUrl(proof)))
  }, Effect.catchTags(onProviderFailed))

  const callback = Effect.fnUntraced(
    function*(request: HttpServerRequest.HttpServerRequest) {
      const begun = yield* attempts.find(request.cookies)
      if (begun === undefined) return yield* failed("expired", "no cookie of a sign-in that is under way")
      const { groups, name, session } = yield* provider.identify(queryOf(request.url), begun.proof)
      if (!(yield* orUnavailable(sessions.isFirstUse(begun.proof.state)))) return yield* failed("expired", "used again")
      const person = GroupRoles.personOf(roles, groups)
      if (Option.isNone(person)) {
        return yield* failed("no-role", `none of the ${groups.length} groups of ${session.subject} has a role`)
      }
      const begin = sessions.begin({ name, ...person.value }, session)
      return sessionCookie.set(yield* orUnavailable(begin))(redirect(begun.to))
    },
    Effect.catchTags({ ...onProviderFailed, Unavailable: () => failed("unavailable", "NATS does not answer") }),
    // each of the provider's answers is accepted only once
    Effect.map(attempts.expireCookie)
  )

  /** OpenID Connect Back-Channel Logout 1.0, section 2.8. */
  const signedOut = Effect.fnUntraced(
    function*(request: HttpServerRequest.HttpServerRequest) {
      const token = Option.getOrElse(UrlParams.getFirst(yield* request.urlParamsBody, "logout_token"), () => "")
      const { sid, sub } = yield* provider.signedOut(token)
      const ended = yield* orUnavailable(sessions.endAll({ sid, subject: sub }))
      yield* Effect.logInfo("the OpenID provider ended sessions", { ended })
      return HttpServerResponse.empty({ status: 200 })
    },
    Effect.catchTags({
      ProviderFailed: ({ detail, problem }) =>
        Effect.as(
          Effect.logWarning("a logout token was refused", { detail }),
          HttpServerResponse.jsonUnsafe({ error: "invalid_request" }, { status: problem === "unavailable" ? 503 : 400 })
        ),
      Unavailable: () =>
        Effect.succeed(HttpServerResponse.jsonUnsafe({ error: "temporarily_unavailable" }, { status: 503 }))
    })
  )

  yield* router.add("GET", startPath, Effect.flatMap(HttpServerRequest.HttpServerRequest, start))
  yield* router.add("GET", callbackPath, Effect.flatMap(HttpServerRequest.HttpServerRequest, callback))
  yield* router.add("POST", signedOutPath, Effect.flatMap(HttpServerRequest.HttpServerRequest, signedOut))
}))
