/**
 * Makes text vectors without a model, by signed feature hashing: each word, and each run of three characters in a word, is hashed to a
 * coordinate and a sign. Texts that share words, or parts of words, point in similar directions.
 */
import { Effect } from "effect"
import { slices } from "./Slices.ts"
import { contentWords } from "./Words.ts"

/** The weight of all trigrams of a word together, relative to the word itself. */
const trigramWeight = 0.36

/** The number of characters between two pauses: a few milliseconds of work. */
const sliceCharacters = 16_384

/**
 * Returns a vector of unit length with `dimensions` coordinates (at least 1), always the same for the same text. Yields to other work
 * between slices of `sliceCharacters`.
 */
export const textVector = Effect.fnUntraced(function*(text: string, dimensions: number) {
  const sums = new Float32Array(dimensions)
  const add = (feature: string, start: number, end: number, weight: number): void => {
    const bits = hash(feature, start, end)
    const at = (bits >>> 1) % dimensions
    sums[at] = sums[at]! + ((bits & 1) === 0 ? weight : -weight)
  }
  for (const slice of slices(text, sliceCharacters)) {
    for (const word of contentWords(slice)) {
      add(word, 0, word.length, 1)
      const marked = `^${word}$`
      for (let at = 0; at + 3 <= marked.length; at++) add(marked, at, at + 3, trigramWeight / word.length)
    }
    if (slice.length > sliceCharacters / 2) yield* Effect.yieldNow
  }
  // for a text without words, or whose features cancel each other out, the text itself is the feature
  if (sums.every((sum) => sum === 0)) add(text, 0, Math.min(text.length, sliceCharacters), 1)
  // the square root keeps repeated words from drowning the others
  let squares = 0
  for (const sum of sums) squares += Math.abs(sum)
  const length = Math.sqrt(squares)
  for (let at = 0; at < dimensions; at++) sums[at] = Math.sign(sums[at]!) * Math.sqrt(Math.abs(sums[at]!)) / length
  return sums
})

/** FNV-1a over UTF-16 code units, with MurmurHash3's final mix, so that every bit depends on every other. */
const hash = (text: string, start: number, end: number): number => {
  let bits = 0x811c9dc5
  for (let at = start; at < end; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193)
  bits = Math.imul(bits ^ bits >>> 16, 0x85ebca6b)
  bits = Math.imul(bits ^ bits >>> 13, 0xc2b2ae35)
  return (bits ^ bits >>> 16) >>> 0
}
