/** Parses `Range` headers (RFC 9110, section 14). */

export interface ByteRange {
  readonly from: number
  /** The first byte after the range. */
  readonly until: number
}

const pattern = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/

/**
 * The requested part of a file of `size` bytes. `whole` if there is no header, or one that may be ignored, with several parts
 * or another unit. `unsatisfiable` if the part starts after the end of the file.
 */
export const parse = (header: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" => {
  const [matched, first, last, suffix] = pattern.exec(header?.trim() ?? "") ?? []
  if (matched === undefined) return "whole"
  if (suffix !== undefined) {
    return Number(suffix) === 0 ? "unsatisfiable" : { from: Math.max(0, size - Number(suffix)), until: size }
  }
  const from = Number(first)
  if (last !== undefined && last !== "" && Number(last) < from) return "whole"
  if (from >= size) return "unsatisfiable"
  return { from, until: last === undefined || last === "" ? size : Math.min(size, Number(last) + 1) }
}
