/**
 * The OpenAPI document at `/openapi.json`, and at `/docs` as a web page, rendered by Scalar.
 *
 * The page is one file that includes Scalar's script. Its content security policy lets browsers run only that script and
 * contact only the gateway. The script is several megabytes, so it is loaded and compressed at the first request for the
 * page, and only the compressed page stays in memory.
 */
import { Effect, Predicate } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiScalar, OpenApi } from "effect/http-api"
import { hash } from "node:crypto"
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { document } from "./Document.ts"

/**
 * The document without schemas of optional parameters. Scalar adds every parameter with a schema to its sample requests,
 * which readers copy; it adds none that only has `content`.
 */
const shown: unknown = JSON.parse(JSON.stringify(document, (_key, value: unknown) => {
  if (!Predicate.hasProperty(value, "in") || !Predicate.hasProperty(value, "schema")) return value
  if (!("required" in value) || value.required !== false || "example" in value) return value
  const { schema, ...parameter } = value
  return { ...parameter, content: { "text/plain": { schema } } }
}))

/** Scalar takes its document from an API, so this empty API returns it. */
const api = HttpApi.make("reference").annotate(OpenApi.Transform, () => shown as Record<string, unknown>)

/** The page exchanges no data with Scalar's servers. */
const scalar = {
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
  showToolbar: "never",
  persistAuth: false,
  documentDownloadType: "json",
  showOperationId: true
} as const

const sourceOf = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`

/** Allows only the scripts in the page. Scalar also needs inline styles. */
const policyOf = (html: string): string => {
  const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script = ""]) => sourceOf(script))
  return [
    "default-src 'none'",
    `script-src ${scripts.join(" ")}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' data: blob:",
    "font-src data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
}

/** The page from Scalar's own route. */
const html = Effect.promise(async () => {
  const { dispose, handler } = HttpRouter.toWebHandler(HttpApiScalar.layer(api, { path: "/docs", scalar }), {
    disableLogger: true
  })
  try {
    return await (await handler(new Request("http://gateway/docs"))).text()
  } finally {
    await dispose()
  }
})

const make = Effect.gen(function*() {
  const text = yield* html
  const zipped = yield* Effect.promise(() => promisify(gzip)(text))
  const headers = {
    etag: `"${hash("sha256", zipped, "base64url")}"`,
    // the page changes with the gateway's version, so browsers revalidate it
    "cache-control": "no-cache",
    vary: "accept-encoding",
    "content-security-policy": policyOf(text),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer"
  }
  return { zipped, headers }
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const page = yield* Effect.cached(make)
  const serve = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
    const { headers, zipped } = yield* page
    if (request.headers["if-none-match"] === headers.etag) {
      return HttpServerResponse.empty({ status: 304, headers })
    }
    const contentType = "text/html; charset=utf-8"
    if (/\bgzip\b/.test(request.headers["accept-encoding"] ?? "")) {
      const zippedHeaders = { ...headers, "content-encoding": "gzip" }
      return HttpServerResponse.uint8Array(zipped, { contentType, headers: zippedHeaders })
    }
    const unzipped = yield* Effect.promise(() => promisify(gunzip)(zipped))
    return HttpServerResponse.uint8Array(unzipped, { contentType, headers })
  })
  yield* router.add("GET", "/docs", serve)
  yield* router.add("GET", "/openapi.json", HttpServerResponse.jsonUnsafe(document))
}))
