/** Lists for the client, in a header of the answer, the parts of its request that could not be carried over. */

/** The rest is counted. Servers and proxies refuse headers of more than 8 KiB, and few readers want more than a page. */
const maxWarnings = 20
const maxCharacters = 2_048

/** Each warning names the path of a field. Plain ASCII, and nothing that a client could have chosen. */
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
