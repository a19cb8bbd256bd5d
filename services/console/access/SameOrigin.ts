/**
 * Refuses what other sites make a browser send. The cookie is already `SameSite=Strict`; but other ports of one host are
 * the same site, so what changes something has to carry a header that only our own pages can add.
 */
import { Effect } from "effect"
import { type Headers, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { pageHeader } from "../api/Admin.ts"
import * as PublicAddress from "./PublicAddress.ts"

/** Names of this machine for itself. A page elsewhere cannot take them on, as it could any other name (DNS rebinding). */
const loopback = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/

const refused = (message: string) => HttpServerResponse.jsonUnsafe({ _tag: "CrossSite", message }, { status: 403 })

const isSafe = (method: string): boolean => method === "GET" || method === "HEAD"

const hostOf = (origin: string): string | undefined => URL.canParse(origin) ? new URL(origin).host : undefined

/** Whether a browser says that the request comes from elsewhere. Programs that are no browsers say nothing. */
const comesFromElsewhere = (headers: Headers.Headers, hosts: ReadonlyArray<string | undefined>): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin" && site !== "none") return true
  const origin = headers["origin"]
  if (origin === undefined) return false
  const host = hostOf(origin)
  return host === undefined || !(host === headers["host"] || hosts.includes(host))
}

export const layer = HttpRouter.middleware(
  Effect.gen(function*() {
    const hosts = (yield* PublicAddress.configured).map(({ host }) => host)
    const isOurs = (host: string) => loopback.test(host) || hosts.includes(host)
    return (handler) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) => {
        const path = url.split("?")[0] ?? ""
        if (!isOurs(headers["host"] ?? "")) {
          return Effect.succeed(refused("The console is not known by this name: set CONSOLE_PUBLIC_URL to its address"))
        }
        // a link from elsewhere may lead to a page, which shows nothing without a session
        if (isSafe(method) && !path.startsWith("/api/") && !path.startsWith("/gateway/")) return handler
        if (comesFromElsewhere(headers, hosts)) return Effect.succeed(refused("The request comes from another site"))
        // a bearer is nothing that a browser adds by itself
        if (!isSafe(method) && headers["authorization"] === undefined && headers[pageHeader] === undefined) {
          return Effect.succeed(refused(`The header ${pageHeader} is missing, and so is an admin token`))
        }
        return handler
      })
  }),
  { global: true }
)
