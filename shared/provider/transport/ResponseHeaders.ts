/** The headers of an answer. A server, or a proxy in front of it, may repeat a header; then its first value counts. */

/** By name in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export const headerOf = (headers: ResponseHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.[0]
}
