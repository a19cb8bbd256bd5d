/** Finds ambiguous or invalid request heads that Node's parser accepts. */
import type { IncomingMessage } from "node:http"

/** The event that the server emits for a request with a valid head, with the request and its response. */
export const accepted = "accepted"

/** A host name or address with an optional port. */
const hostPattern = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i

/** What is wrong with a request head, in one sentence for the client; `undefined` if it is valid. */
export const headErrorOf = ({ headers, httpVersion, rawHeaders, url = "" }: IncomingMessage): string | undefined => {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return `HTTP/${httpVersion} is not supported: use HTTP/1.1`
  return mistakeInHosts(countOf(rawHeaders, "host"), headers.host, httpVersion) ??
    mistakeInTarget(url, headers.host) ??
    mistakeInEncoding(headers["transfer-encoding"], httpVersion)
}

const mistakeInHosts = (count: number, host: string | undefined, httpVersion: string): string | undefined => {
  if (count > 1) return "The request has more than one Host header"
  // optional in HTTP/1.0
  if (host === undefined) return httpVersion === "1.1" ? "The Host header is missing" : undefined
  return hostPattern.test(host) ? undefined : "The Host header must be a host name or address with an optional port"
}

/** A target in absolute form also names a host, and a proxy may have routed by either, so both must agree. */
const mistakeInTarget = (target: string, host: string | undefined): string | undefined => {
  if (target.startsWith("/") || target === "*") return undefined
  const authority = /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]?.toLowerCase()
  if (authority !== undefined && (host === undefined || host.toLowerCase() === authority)) return undefined
  return "The request target must be a path, or an HTTP URL with the same host as the Host header"
}

/** `encoding`: the values of all Transfer-Encoding headers, joined by commas. */
const mistakeInEncoding = (encoding: string | undefined, httpVersion: string): string | undefined => {
  if (encoding === undefined) return undefined
  if (httpVersion === "1.0") return "The Transfer-Encoding header is not part of HTTP/1.0"
  return encoding.toLowerCase() === "chunked"
    ? undefined
    : "The Transfer-Encoding header must be 'chunked': no other coding is supported"
}

/** Counts a header. Node's parsed headers keep only the first Host. */
const countOf = (rawHeaders: ReadonlyArray<string>, header: string): number => {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === header.length && name.toLowerCase() === header) count++
  }
  return count
}
