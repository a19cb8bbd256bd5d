/** Cuts long texts into slices, between which other work can run. */

/**
 * Cuts a text into slices of at most `size` characters, at a line's end or else between words where it can. The slices
 * together are the text.
 */
export function* slices(text: string, size: number): Generator<string> {
  let start = 0
  while (text.length - start > size) {
    // searched as a text of its own: in the whole text a search that finds nothing goes back to the very beginning
    const floor = start + Math.ceil(size * 0.75)
    const last = text.slice(floor, start + size + 1)
    let end = floor + last.lastIndexOf("\n")
    if (end < floor) end = floor + last.lastIndexOf(" ")
    if (end < floor) end = isLowSurrogate(text.charCodeAt(start + size)) ? start + size - 1 : start + size
    yield text.slice(start, end)
    start = end
  }
  if (start < text.length) yield text.slice(start)
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff
