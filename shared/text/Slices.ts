/** Splits long texts into slices, so that other work can run between them. */

/**
 * Splits a text into slices of at most `size` characters: at a line break if possible, or else between words. Concatenated, the slices
 * are the text.
 */
export function* slices(text: string, size: number): Generator<string> {
  let start = 0
  while (text.length - start > size) {
    // searches a copy of the end, because a failed search in the whole text would run back to its beginning
    const floor = start + Math.ceil(size * 0.75)
    const last = text.slice(floor, start + size + 1)
    const space = last.lastIndexOf(last.includes("\n") ? "\n" : " ")
    const isInPair = (text.charCodeAt(start + size) & 0xfc00) === 0xdc00
    const end = space === -1 ? start + size - (isInPair ? 1 : 0) : floor + space
    yield text.slice(start, end)
    start = end
  }
  if (start < text.length) yield text.slice(start)
}
