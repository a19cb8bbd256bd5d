/**
 * Lets pages of the origins that the operator has allowed call the gateway from a browser (CORS). A preflight from elsewhere goes on
 * to the router, which refuses and records it.
 *
 * Effect's `HttpMiddleware.cors` covers only its router, which operations do not reach, nor requests that come before there is one. It
 * also answers every `OPTIONS` as a preflight.
 */
import { Config, Context, Effect, Layer, Schema } from "effect"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"

/** How long a browser need not repeat a preflight, in seconds. Chromium keeps the answer no longer than this. */
const maxAge = "7200"

/** An origin as browsers send it: no path, no port that is the scheme's own, lower case. `URL` gives the schemes of apps no origin. */
const isOrigin = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || text.includes("*")) return false
  return url.origin === text || (url.origin === "null" && url.host !== "" && text === `${url.protocol}//${url.host}`)
}

const originsIn = (text: string): ReadonlyArray<string> =>
  text.split(",").map((origin) => origin.trim()).filter((origin) => origin !== "")

const Origins = Schema.String.check(
  Schema.makeFilter((text: string) => originsIn(text).every((origin) => origin === "*" || isOrigin(origin)), {
    expected: "origins such as https://app.example.com, separated by commas, or *"
  })
)

type Headers = Readonly<IncomingHttpHeaders>

/** Whether a browser asks for permission to send another request. */
export const isPreflight = (method: string | undefined, headers: Headers): boolean =>
  method === "OPTIONS" && headers.origin !== undefined && headers["access-control-request-method"] !== undefined

/** Reads `GATEWAY_CORS_ORIGINS`: the allowed origins, or `*`; none by default. */
export class CrossOrigin extends Context.Service<CrossOrigin, {
  /** Adds the headers of CORS to the response, and answers a preflight that is allowed. Returns whether it has answered. */
  readonly take: (request: IncomingMessage, response: ServerResponse) => boolean
  /**
   * The origin that may not open a WebSocket, which browsers do without a preflight. Without allowed origins any may, as a page
   * still needs a key.
   */
  readonly refusedIn: (headers: Headers) => string | undefined
}>()("services/ingress/exchange/CrossOrigin") {
  static readonly layer = Layer.effect(
    CrossOrigin,
    Effect.gen(function*() {
      const allowed = new Set(
        originsIn(yield* Config.schema(Origins, "GATEWAY_CORS_ORIGINS").pipe(Config.withDefault("")))
      )
      const isForAll = allowed.has("*")
      const allows = (origin: string) => isForAll || allowed.has(origin)
      return CrossOrigin.of({
        take: (request, response) => {
          if (allowed.size === 0) return false
          const { origin } = request.headers
          // also where no origin is sent: a cache must not give that answer to a page
          if (!isForAll) response.setHeader("vary", "origin")
          if (origin === undefined || !allows(origin)) return false
          response.setHeader("access-control-allow-origin", isForAll ? "*" : origin)
          // includes all headers because the requests are without credentials in the sense of CORS: cookies and client certificates
          response.setHeader("access-control-expose-headers", "*")
          if (!isPreflight(request.method, request.headers)) return false
          // also for unknown paths, so that pages can read the error; clients have too many headers of their own for a list
          response.setHeader("access-control-allow-methods", "GET, HEAD, POST, DELETE")
          response.setHeader("access-control-allow-headers", request.headers["access-control-request-headers"] ?? "")
          response.setHeader("access-control-max-age", maxAge)
          response.appendHeader("vary", "access-control-request-headers")
          response.writeHead(204).end()
          return true
        },
        refusedIn: ({ origin }) => allowed.size === 0 || origin === undefined || allows(origin) ? undefined : origin
      })
    })
  )
}
