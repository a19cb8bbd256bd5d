/**
 * Rejects cross-site requests. The session cookie is `SameSite=Strict`, but other ports of a host count as the same site.
 * Requests that change something must therefore carry a header that only the console's own pages can add.
 */
import { Effect } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { pageHeader } from "../api/Admin.ts"
import { callbackPath, isPage, signedOutPath, startPath } from "../api/SignIn.ts"
import * as PublicAddress from "./PublicAddress.ts"

const rejected = (message: string) => HttpServerResponse.jsonUnsafe({ _tag: "CrossSite", message }, { status: 403 })

/**
 * Whether other sites may lead a browser here: a page shows nothing without a session, and the OpenID provider sends browsers back. All
 * other paths are protected, because the router also finds the admin API at paths such as `/API/keys` and `/%61pi/keys`.
 */
const isLinkable = (path: string): boolean => isPage(path) || path === startPath || path === callbackPath

const isSafe = (method: string): boolean => method === "GET" || method === "HEAD"

/** Whether the browser's headers show another origin. Other programs send no such headers. */
const isCrossOrigin = (headers: Headers.Headers, hosts: ReadonlyArray<string | undefined>): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin" && site !== "none") return true
  const origin = headers["origin"]
  if (origin === undefined) return false
  const host = URL.canParse(origin) ? new URL(origin).host : undefined
  return host === undefined || !(host === headers["host"] || hosts.includes(host))
}

export const layer = HttpRouter.middleware(
  Effect.gen(function*() {
    const hosts = (yield* PublicAddress.configured).map(({ host }) => host)
    const isOurs = (host: string) => PublicAddress.isLoopback(host) || hosts.includes(host)
    return (handler) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) => {
        const path = url.split("?")[0] ?? ""
        // the OpenID provider sends this, with a signed token and no cookie; it may use another host name
        if (method === "POST" && path === signedOutPath) return handler
        if (!isOurs(headers["host"] ?? "")) {
          return Effect.succeed(rejected("Unknown host name. Set CONSOLE_PUBLIC_URL to the console's public URL"))
        }
        if (isSafe(method) && isLinkable(path)) return handler
        if (isCrossOrigin(headers, hosts)) return Effect.succeed(rejected("The request comes from another site"))
        // browsers never add a bearer token on their own
        if (!isSafe(method) && headers["authorization"] === undefined && headers[pageHeader] === undefined) {
          return Effect.succeed(rejected(`Send the header ${pageHeader} or the admin token as a bearer token`))
        }
        return handler
      })
  }),
  { global: true }
)
