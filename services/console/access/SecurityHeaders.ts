/**
 * What every answer tells browsers: run nothing but our own files, be framed by nobody, keep nothing, guess nothing.
 * Requests that no handler answers are answered here, so that this holds for them too.
 */
import { Cause, Effect, Schema } from "effect"
import { HttpRouter, HttpServerError, HttpServerResponse } from "effect/http"
import { NotFound } from "../api/Errors.ts"

/** `nonce` lets those `<style>` elements through that our own scripts add with it. */
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

/** Where a handler has said something of its own, that stands. */
const defaults = { "content-security-policy": contentSecurityPolicy(), "cache-control": "no-store" }

const plain = (status: number, _tag: string, message: string) =>
  HttpServerResponse.jsonUnsafe({ _tag, message }, { status })

export const notFound = HttpServerResponse.jsonUnsafe(Schema.encodeSync(NotFound)(new NotFound()), { status: 404 })

const unreadable = plain(400, "Unreadable", "The request cannot be read, or is too large")

const unanswered = <E>(cause: Cause.Cause<E>): Effect.Effect<HttpServerResponse.HttpServerResponse, E> => {
  // what the platform itself refuses comes as a failure, or through an endpoint as a defect
  const failure = Cause.squash(cause)
  if (HttpServerError.isHttpServerError(failure)) {
    if (failure.reason._tag === "RouteNotFound") return Effect.succeed(notFound)
    if (failure.reason._tag === "RequestParseError") return Effect.succeed(unreadable)
  }
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
  return Effect.as(
    Effect.logError("request failed by a mistake of ours", cause),
    plain(500, "InternalError", "The console failed on this request: its log says why")
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
