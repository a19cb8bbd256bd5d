/**
 * `/docs`: the OpenAPI document as a page, made by Scalar.
 *
 * It is one file that holds everything, Scalar's program included, and its policy lets browsers run just that and reach
 * nobody else. That program is several megabytes: it is loaded and compressed when somebody asks for the page for the
 * first time, and only what is sent is kept.
 */
import { Effect, Predicate } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiScalar, OpenApi } from "effect/http-api"
import { hash } from "node:crypto"
import { promisify } from "node:util"
import { gunzip, gzip } from "node:zlib"
import { document } from "./Document.ts"

/**
 * Scalar writes every parameter that has a schema into the requests that it shows, optional ones too, and readers would
 * copy them. Of a parameter's content it makes up nothing.
 */
const shown: unknown = JSON.parse(JSON.stringify(document, (_key, value: unknown) => {
  if (!Predicate.hasProperty(value, "in") || !Predicate.hasProperty(value, "schema")) return value
  if (!("required" in value) || value.required !== false || "example" in value) return value
  const { schema, ...parameter } = value
  return { ...parameter, content: { "text/plain": { schema } } }
}))

/** Scalar takes its document from an API: this one says no more than that. */
const api = HttpApi.make("reference").annotate(OpenApi.Transform, () => shown as Record<string, unknown>)

/** Nothing of the page is to go to Scalar's makers, or to come from them. */
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

interface Page {
  readonly zipped: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

const sourceOf = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`

/** Runs the scripts that the page holds and no others. Scalar writes its styles into the page and into its elements. */
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

/** What Scalar's own route answers. */
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
  const page: Page = {
    zipped,
    headers: {
      etag: `"${hash("sha256", zipped, "base64url")}"`,
      // what it describes changes with the gateway: ask, and be told that it has not
      "cache-control": "no-cache",
      vary: "accept-encoding",
      "content-security-policy": policyOf(text),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer"
    }
  }
  return page
})

const answer = Effect.fnUntraced(function*({ headers: asked }: HttpServerRequest.HttpServerRequest, page: Page) {
  const { headers, zipped } = page
  if (asked["if-none-match"] === headers["etag"]) return HttpServerResponse.empty({ status: 304, headers })
  const takesZipped = /\bgzip\b/.test(asked["accept-encoding"] ?? "")
  return HttpServerResponse.uint8Array(
    takesZipped ? zipped : yield* Effect.promise(() => promisify(gunzip)(zipped)),
    {
      contentType: "text/html; charset=utf-8",
      headers: takesZipped ? { ...headers, "content-encoding": "gzip" } : headers
    }
  )
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const page = yield* Effect.cached(make)
  yield* router.add("GET", "/docs", (request) => Effect.flatMap(page, (page) => answer(request, page)))
}))
