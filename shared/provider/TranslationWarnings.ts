/** Tells a client what of its request could not be carried over, in a header of the answer. */

/** What more there is would only make the header longer, and is counted. */
const maxWarnings = 20

/** Each warning names the path of a field. Plain ASCII, and nothing that a client could have chosen. */
export const toHeaders = (warnings: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  warnings.length === 0 ? {} : {
    "x-translation-warnings": [
      ...warnings.slice(0, maxWarnings),
      ...(warnings.length > maxWarnings ? [`and ${warnings.length - maxWarnings} more`] : [])
    ].join("; ")
  }
