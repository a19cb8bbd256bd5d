/** Lists the parts of a request that were lost in translation, in a header of the answer or in a task. */

/** The limits of the list. Further warnings are only counted, because servers and proxies reject headers of more than 8 KiB. */
const maxWarnings = 20
const maxCharacters = 2_048

const name = "x-translation-warnings"

/** The first warnings, and the number of further ones. */
export const bounded = (warnings: ReadonlyArray<string>): ReadonlyArray<string> => {
  const listed: Array<string> = []
  let characters = 0
  for (const warning of warnings) {
    characters += warning.length
    if (listed.length === maxWarnings || characters > maxCharacters) break
    listed.push(warning)
  }
  const more = warnings.length - listed.length
  return [...listed, ...(more > 0 ? [`and ${more} more`] : [])]
}

/** The headers for these warnings. Each one names the path of a field, without any text from the client. */
export const toHeaders = (warnings: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  // a package of the AI SDK may use any characters, and a header would then fail an answer that was paid for
  warnings.length === 0 ? {} : { [name]: bounded(warnings).join("; ").replaceAll(/[^ -~]/g, "?") }

/** The headers of an answer with further warnings. */
export const add = (
  headers: Readonly<Record<string, string>>,
  warnings: ReadonlyArray<string>
): Readonly<Record<string, string>> =>
  warnings.length === 0
    ? headers
    : { ...headers, ...toHeaders([...new Set([...headers[name]?.split("; ") ?? [], ...warnings])]) }
