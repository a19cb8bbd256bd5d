/** The answer's header that lists the parts of the request lost in translation. */

/** Further warnings are only counted: servers and proxies reject headers of more than 8 KiB. */
const maxWarnings = 20
const maxCharacters = 2_048

/** Each warning names the path of a field: plain ASCII, and no text from the client. */
export const toHeaders = (warnings: ReadonlyArray<string>): Readonly<Record<string, string>> => {
  if (warnings.length === 0) return {}
  const listed: Array<string> = []
  let characters = 0
  for (const warning of warnings) {
    characters += warning.length
    if (listed.length === maxWarnings || characters > maxCharacters) break
    listed.push(warning)
  }
  const more = warnings.length - listed.length
  return { "x-translation-warnings": [...listed, ...(more > 0 ? [`and ${more} more`] : [])].join("; ") }
}
