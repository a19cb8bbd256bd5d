/**
 * Sign-ins that wait for the provider. A cookie binds each sign-in to the browser that began it: in any other browser the provider's
 * answer is useless. Nonce and verifier derive from the state, so that no browser knows them, and nothing is stored.
 */
import { Clock, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { randomBytes } from "node:crypto"
import * as Signer from "../../../shared/secrets/Signer.ts"
import * as SessionCookie from "../access/SessionCookie.ts"
import { isPage } from "../api/SignIn.ts"
import type { Proof } from "./OpenIdProvider.ts"

const cookieName = "gateway_console_sign_in"

const lifetimeMs = 10 * 60_000

/** The state, the expiry in seconds since the epoch, the page to show afterwards, and the signature of all three. */
const pattern = /^(([\w-]{43})\.(\d{1,12})\.(\/[a-z-]{0,40}))\.([\w-]{43})$/

/** Reads `GATEWAY_SECRET` and `CONSOLE_PUBLIC_URL`. */
export const make = Effect.gen(function*() {
  const signer = yield* Signer.make("console-sign-in")
  // the provider's redirect comes from another site
  const attributes = { ...(yield* SessionCookie.attributes), path: "/sign-in", sameSite: "lax" } as const
  const proofOf = (state: string): Proof => ({
    state,
    nonce: signer.sign(`nonce ${state}`),
    verifier: signer.sign(`verifier ${state}`)
  })

  return {
    /** Begins a sign-in, after which the browser shows a page of the console. */
    begin: Effect.fnUntraced(function*(to: string) {
      const state = randomBytes(32).toString("base64url")
      const expires = Math.floor(((yield* Clock.currentTimeMillis) + lifetimeMs) / 1_000)
      const text = `${state}.${expires}.${isPage(to) ? to : "/"}`
      const cookie = `${text}.${signer.sign(text)}`
      return {
        proof: proofOf(state),
        setCookie: HttpServerResponse.setCookieUnsafe(cookieName, cookie, { ...attributes, maxAge: lifetimeMs })
      }
    }),
    /** The sign-in of a browser's cookies; `undefined` if there is none, or it took too long. */
    find: Effect.fnUntraced(function*(cookies: Readonly<Record<string, string | undefined>>) {
      const [, text = "", state = "", expires = "", to = "/", signature = ""] =
        pattern.exec(cookies[cookieName] ?? "") ?? []
      if (!signer.isSigned(text, signature)) return undefined
      if (Number(expires) * 1_000 <= (yield* Clock.currentTimeMillis)) return undefined
      return { proof: proofOf(state), to }
    }),
    expireCookie: HttpServerResponse.expireCookieUnsafe(cookieName, attributes)
  }
})
