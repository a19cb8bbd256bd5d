/**
 * Security headers on every response: only our own files run, no framing, no caching, no content sniffing. Unmatched and
 * failed requests are answered here, so that their responses carry the headers too.
 */
import { Cause, Effect, Schema } from "effect"
import { HttpRouter, HttpServerError, HttpServerResponse } from "effect/http"
import { NotFound } from "../api/Errors.ts"

/** `nonce` allows the `<style>` elements that our own scripts add with it. */
export const contentSecurityPolicy = (nonce?: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self'${nonce === undefined ? "" : ` 'nonce-${nonce}'`}`,
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

const headers = {
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=()"
}

/** A handler's own headers take precedence over these. */
const defaults = { "content-security-policy": contentSecurityPolicy(), "cache-control": "no-store" }

const plain = (status: number, _tag: string, message: string) =>
  HttpServerResponse.jsonUnsafe({ _tag, message }, { status })

export const notFound = HttpServerResponse.jsonUnsafe(Schema.encodeSync(NotFound)(new NotFound()), { status: 404 })

const unreadable = plain(400, "Unreadable", "The request is unreadable or too large")

const unanswered = <E>(cause: Cause.Cause<E>): Effect.Effect<HttpServerResponse.HttpServerResponse, E> => {
  // rejections by the platform are failures, or defects inside an endpoint
  const failure = Cause.squash(cause)
  if (HttpServerError.isHttpServerError(failure)) {
    if (failure.reason._tag === "RouteNotFound") return Effect.succeed(notFound)
    if (failure.reason._tag === "RequestParseError") return Effect.succeed(unreadable)
  }
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
  return Effect.as(
    Effect.logError("request failed because of a defect in the console", cause),
    plain(500, "InternalError", "Internal error. The console's log has the cause")
  )
}

export const layer = HttpRouter.middleware(
  (handler) =>
    handler.pipe(
      Effect.catchCause(unanswered),
      Effect.map((response) =>
        HttpServerResponse.setHeaders(response, { ...defaults, ...response.headers, ...headers })
      )
    ),
  { global: true }
)
