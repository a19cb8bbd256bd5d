/** The headers of an answer. A server, or a proxy in front of it, may repeat a header; then its first value counts. */

import { codingsIn } from "../../bounds/ContentCoding.ts"

/** By name in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export const headerOf = (headers: ResponseHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}

/** The content codings of the answer; `undefined` if one is unknown. */
export const codingsOf = ({ "content-encoding": value = "" }: ResponseHeaders) =>
  codingsIn(typeof value === "string" ? value : value.join())

/** The `content-type` with its media type in lower case. Its parameters stay as they are, since their case can matter. */
export const contentTypeOf = (headers: ResponseHeaders): string | undefined =>
  headerOf(headers, "content-type")?.replace(/^[^;]*/, (mediaType) => mediaType.toLowerCase())
