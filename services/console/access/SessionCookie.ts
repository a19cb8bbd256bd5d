/** The cookie that names a session. */
import { DateTime, Effect, Redacted } from "effect"
import { HttpServerResponse } from "effect/http"
import { cookieName } from "../api/Admin.ts"
import * as PublicAddress from "./PublicAddress.ts"
import type { Session } from "./Sessions.ts"

/** Attributes of every cookie of the console: with an https URL, browsers send it only over encrypted connections. */
export const attributes = Effect.map(PublicAddress.configured, (urls) => ({
  httpOnly: true,
  secure: urls.some((url) => url.protocol === "https:")
}))

export const make = Effect.map(attributes, (attributes) => {
  const own = { ...attributes, path: "/", sameSite: "strict" } as const
  return {
    set: ({ cookie, session }: { readonly cookie: Redacted.Redacted; readonly session: Session }) =>
      HttpServerResponse.setCookieUnsafe(cookieName, Redacted.value(cookie), {
        ...own,
        expires: DateTime.toDate(session.expiresAt)
      }),
    expire: HttpServerResponse.expireCookieUnsafe(cookieName, own)
  }
})
