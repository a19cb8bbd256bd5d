/**
 * The OpenAPI document at `/openapi.json`, and at `/docs` as a web page.
 *
 * The page is one file without scripts, whose content security policy allows nothing but its style sheet. It is rendered and
 * compressed at its first request.
 */
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { document } from "../Document.ts"
import { render } from "./Page.ts"
import { style } from "./Style.ts"

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", style.text, "base64")}'`,
  "img-src data:",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'"
].join("; ")

const make = Effect.gen(function*() {
  const text = render()
  const zipped = yield* Effect.promise(() => promisify(gzip)(text))
  const headers = {
    etag: `"${hash("sha256", text, "base64url")}"`,
    // the page changes with the gateway's version, so browsers revalidate it
    "cache-control": "no-cache",
    // the origin because of `CrossOrigin`
    vary: "accept-encoding, origin",
    "content-security-policy": policy,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer"
  }
  return { text, zipped, headers }
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const page = yield* Effect.cached(make)
  const serve = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
    const { headers, text, zipped } = yield* page
    if (request.headers["if-none-match"] === headers.etag) {
      return HttpServerResponse.empty({ status: 304, headers })
    }
    const contentType = "text/html; charset=utf-8"
    if (/\bgzip\b/.test(request.headers["accept-encoding"] ?? "")) {
      const zippedHeaders = { ...headers, "content-encoding": "gzip" }
      return HttpServerResponse.uint8Array(zipped, { contentType, headers: zippedHeaders })
    }
    return HttpServerResponse.text(text, { contentType, headers })
  })
  yield* router.add("GET", "/docs", serve)
  yield* router.add("GET", "/openapi.json", HttpServerResponse.jsonUnsafe(document))
}))
