/** Cuts long texts into slices, between which other work can run. */

/**
 * Cuts a text into slices of at most `size` characters, at a line's end or else between words where it can. The slices
 * together are the text.
 */
export function* slices(text: string, size: number): Generator<string> {
  let start = 0
  while (text.length - start > size) {
    const floor = start + size * 0.75
    let end = text.lastIndexOf("\n", start + size)
    if (end < floor) end = text.lastIndexOf(" ", start + size)
    if (end < floor) end = isLowSurrogate(text.charCodeAt(start + size)) ? start + size - 1 : start + size
    yield text.slice(start, end)
    start = end
  }
  if (start < text.length) yield text.slice(start)
}

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff
