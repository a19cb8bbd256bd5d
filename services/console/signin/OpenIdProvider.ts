/**
 * The OpenID provider: where to send browsers, who came back, and who has signed out elsewhere. `openid-client` discovers the provider
 * and redeems codes, with PKCE, state, nonce and the checks of the ID token's claims; `jose` verifies signatures by the provider's keys.
 */
import { Context, Effect, Layer, Option, Predicate, Redacted, Schema } from "effect"
import { createRemoteJWKSet, errors as joseErrors, jwtVerify, type JWTVerifyOptions } from "jose"
import * as OpenIdClient from "openid-client"
import { type Oidc, OidcSettings } from "../access/OidcSettings.ts"
import type { ProviderSession } from "../access/Sessions.ts"
import { callbackPath } from "../api/SignIn.ts"
import { groupsIn, nameIn } from "./Claims.ts"

const timeoutSeconds = 5

/** The provider's settings are read again after this long; its keys after ten minutes, or for an unknown key. */
const discoveredFor = "1 hour"

/** The minimum time between two reads of the provider's keys because of a token with an unknown key. */
const keysCooldownMs = 1_000

/** Tolerated difference of clocks, which `openid-client` tolerates, too. */
const clockToleranceSeconds = 30

/** Signatures by a private key, which only the provider can make. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** Maximum age of a logout token, which the provider sends immediately. */
const maxLogoutTokenAge = "5 minutes"

/** A longer token does not fit into the URL for signing out. */
const maxIdTokenLength = 4_096

/** A sign-in or sign-out with the provider failed. `detail` is for the log. */
class ProviderFailed extends Schema.TaggedError<ProviderFailed>()("ProviderFailed", {
  problem: Schema.Literals(["cancelled", "refused", "unavailable"]),
  detail: Schema.String
}) {}

/** Secrets of one sign-in, which prove that the provider's answer belongs to it. */
export interface Proof {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The person who signed in. */
interface Identity {
  readonly name: string
  readonly groups: ReadonlyArray<string>
  readonly session: ProviderSession
}

const LogoutToken = Schema.Struct({
  sub: Schema.optionalKey(Schema.NonEmptyString),
  sid: Schema.optionalKey(Schema.NonEmptyString),
  nonce: Schema.optionalKey(Schema.Undefined),
  events: Schema.Struct({
    "http://schemas.openid.net/event/backchannel-logout": Schema.Record(Schema.String, Schema.Unknown)
  })
}).check(Schema.makeFilter(({ sid, sub }) => sid !== undefined || sub !== undefined))

const decodeLogoutToken = Schema.decodeUnknownEffect(LogoutToken)

const problemOf = (cause: unknown): ProviderFailed["problem"] => {
  if (cause instanceof OpenIdClient.AuthorizationResponseError) {
    return cause.error === "access_denied" ? "cancelled" : "refused"
  }
  // `fetch` fails with a `TypeError`
  const isUnreachable = cause instanceof TypeError || cause instanceof joseErrors.JWKSTimeout
    || Predicate.hasProperty(cause, "code") && cause.code === "OAUTH_TIMEOUT"
  return isUnreachable ? "unavailable" : "refused"
}

/** Error codes and messages for the log. They contain no authorization codes or tokens. */
const detailOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return "unknown"
  const fields = ["code", "error", "error_description"].flatMap((name) =>
    Predicate.hasProperty(cause, name) && typeof cause[name] === "string" ? [cause[name]] : []
  )
  return [cause.message, ...fields].join(", ").slice(0, 500)
}

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new ProviderFailed({ problem: problemOf(cause), detail: detailOf(cause) })
  })

const make = Effect.fnUntraced(function*(settings: Oidc) {
  const { clientId, clientSecret, consoleUrl, issuer } = settings
  const secret = Redacted.value(clientSecret)
  const callbackUrl = new URL(callbackPath, consoleUrl)

  /** Authenticates by a method that the provider supports: `client_secret_basic` unless its metadata says otherwise. */
  const authentication: OpenIdClient.ClientAuth = (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server
    const { ClientSecretBasic, ClientSecretPost } = OpenIdClient
    return (methods.includes("client_secret_basic") ? ClientSecretBasic : ClientSecretPost)(secret)(server, ...rest)
  }

  const discover = attempt(async () => {
    const client = await OpenIdClient.discovery(issuer, clientId, undefined, authentication, {
      timeout: timeoutSeconds,
      execute: issuer.protocol === "http:" ? [OpenIdClient.allowInsecureRequests] : []
    })
    const { issuer: name, jwks_uri: keysUrl } = client.serverMetadata()
    if (keysUrl === undefined) throw new Error("the provider's metadata has no jwks_uri")
    const keys = createRemoteJWKSet(new URL(keysUrl), {
      cooldownDuration: keysCooldownMs,
      timeoutDuration: timeoutSeconds * 1_000
    })
    const verify = (token: string, checks: JWTVerifyOptions) =>
      jwtVerify(token, keys, {
        issuer: name,
        audience: clientId,
        algorithms,
        clockTolerance: clockToleranceSeconds,
        ...checks
      })
    return { client, verify }
  })
  const [cached, forget] = yield* Effect.cachedInvalidateWithTTL(discover, discoveredFor)
  const provider = cached.pipe(
    // failures are not cached
    Effect.tapError(() => forget),
    Effect.mapError(({ detail }) => new ProviderFailed({ problem: "unavailable", detail }))
  )

  return {
    /** Where a browser signs in. */
    authorizationUrl: Effect.fnUntraced(function*({ nonce, state, verifier }: Proof) {
      const { client } = yield* provider
      const challenge = yield* attempt(() => OpenIdClient.calculatePKCECodeChallenge(verifier))
      return OpenIdClient.buildAuthorizationUrl(client, {
        redirect_uri: callbackUrl.href,
        scope: settings.scopes,
        code_challenge: challenge,
        code_challenge_method: "S256",
        state,
        nonce
      })
    }),

    /** The identity of the person who came back with this query. */
    identify: Effect.fnUntraced(function*(query: string, { nonce, state, verifier }: Proof) {
      const { client, verify } = yield* provider
      const answer = new URL(callbackUrl)
      answer.search = query
      return yield* attempt(async (): Promise<Identity> => {
        const tokens = await OpenIdClient.authorizationCodeGrant(client, answer, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true
        })
        const idToken = tokens.id_token ?? ""
        const { payload: { sub = "", ...claims } } = await verify(idToken, { requiredClaims: ["sub", "exp"] })
        // some providers return claims only at the userinfo endpoint, not in the token
        const isComplete = groupsIn(claims, settings.groupsClaim) !== undefined && nameIn(claims) !== undefined
        const all = isComplete || client.serverMetadata().userinfo_endpoint === undefined
          ? claims
          : { ...await OpenIdClient.fetchUserInfo(client, tokens.access_token, sub), ...claims }
        return {
          name: nameIn(all) ?? sub,
          groups: groupsIn(all, settings.groupsClaim) ?? [],
          session: {
            subject: sub,
            sid: typeof claims["sid"] === "string" ? claims["sid"] : null,
            idToken: idToken.length > maxIdTokenLength ? null : idToken
          }
        }
      })
    }),

    /** The sign-out that a logout token announces. */
    signedOut: Effect.fnUntraced(function*(token: string) {
      const { verify } = yield* provider
      const { payload } = yield* attempt(() =>
        verify(token, { requiredClaims: ["exp", "jti"], maxTokenAge: maxLogoutTokenAge })
      )
      return yield* Effect.mapError(
        decodeLogoutToken(payload),
        () => new ProviderFailed({ problem: "refused", detail: "the token is not a logout token" })
      )
    }),

    /** Where a browser ends its session at the provider; none if the provider has no such page. */
    signOutUrl: Effect.fnUntraced(function*(idToken: string | null) {
      const { client } = yield* provider
      if (client.serverMetadata().end_session_endpoint === undefined) return Option.none<string>()
      const { href } = OpenIdClient.buildEndSessionUrl(client, {
        post_logout_redirect_uri: new URL("/", consoleUrl).href,
        ...(idToken === null ? {} : { id_token_hint: idToken })
      })
      return Option.some(href)
    })
  }
})

type Provider = Effect.Success<ReturnType<typeof make>>

export class OpenIdProvider extends Context.Service<OpenIdProvider, Option.Option<Provider>>()(
  "services/console/signin/OpenIdProvider"
) {
  /** No provider if none is configured. */
  static readonly layer = Layer.effect(
    OpenIdProvider,
    Effect.flatMap(OidcSettings, (settings) => Effect.transposeOption(Option.map(settings, make)))
  )
}
