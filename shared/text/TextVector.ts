/**
 * Texts as vectors without a model, by signed feature hashing: every word and every run of three characters in a word is
 * hashed to a coordinate and a sign. Texts that share words, or parts of words, point in similar directions.
 */
import { Effect } from "effect"
import { slices } from "./Slices.ts"
import { isFunctionWord, pairs, stem, words } from "./Words.ts"

/** How much the features count, before the square root that keeps repeated ones from drowning the others. */
const weights = { word: 1, functionWord: 0.02, trigramsOfWord: 0.36 }

/** What the same text means as another kind of feature has another hash. */
const seeds = { word: 0x811c9dc5, trigram: 0x2f0b4a47, text: 0x51ed270b }

/** Characters between two pauses: some milliseconds of work. */
const sliceCharacters = 16_384

/**
 * A vector of this many coordinates, at least 1, and of unit length. The same text always has the same one. Lets other
 * work run between slices of 16 KiB.
 */
export const textVector = Effect.fnUntraced(function*(text: string, dimensions: number) {
  const sums = new Float32Array(dimensions)
  for (const slice of slices(text, sliceCharacters)) {
    add(sums, slice)
    if (slice.length > sliceCharacters / 2) yield* Effect.yieldNow
  }
  return toUnitLength(sums, text)
})

const add = (sums: Float32Array, text: string): void => {
  for (const { isUnspaced, text: word } of words(text.normalize("NFKC"))) {
    if (isUnspaced) {
      for (const pair of pairs(word)) addFeature(sums, hash(seeds.word, pair, 0, pair.length), weights.word)
    } else if (isFunctionWord(word)) {
      addFeature(sums, hash(seeds.word, word, 0, word.length), weights.functionWord)
    } else {
      const stemmed = stem(word)
      addFeature(sums, hash(seeds.word, stemmed, 0, stemmed.length), weights.word)
      const marked = `^${word}$`
      const each = weights.trigramsOfWord / word.length
      for (let at = 0; at + 3 <= marked.length; at++) addFeature(sums, hash(seeds.trigram, marked, at, at + 3), each)
    }
  }
}

const addFeature = (sums: Float32Array, hash: number, weight: number): void => {
  const at = (hash >>> 1) % sums.length
  sums[at] = (sums[at] as number) + ((hash & 1) === 0 ? weight : -weight)
}

/** FNV-1a over UTF-16 code units, with MurmurHash3's finish, which lets every bit depend on every other. */
const hash = (seed: number, text: string, start: number, end: number): number => {
  let bits = seed
  for (let at = start; at < end; at++) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193)
  bits = Math.imul(bits ^ bits >>> 16, 0x85ebca6b)
  bits = Math.imul(bits ^ bits >>> 13, 0xc2b2ae35)
  return (bits ^ bits >>> 16) >>> 0
}

const toUnitLength = (sums: Float32Array, text: string): Float32Array => {
  let squares = 0
  for (let at = 0; at < sums.length; at++) {
    const sum = sums[at] as number
    if (sum === 0) continue
    squares += Math.abs(sum)
    sums[at] = Math.sign(sum) * Math.sqrt(Math.abs(sum))
  }
  if (squares === 0) {
    // a text without words, or whose features cancel each other out
    addFeature(sums, hash(seeds.text, text, 0, Math.min(text.length, sliceCharacters)), 1)
    return sums
  }
  const length = Math.sqrt(squares)
  for (let at = 0; at < sums.length; at++) sums[at] = (sums[at] as number) / length
  return sums
}

/** Of two vectors of unit length: -1 to 1. */
export const cosine = (a: Float32Array, b: Float32Array): number => {
  let sum = 0
  for (let at = 0; at < a.length; at++) sum += (a[at] as number) * (b[at] as number)
  return sum
}
