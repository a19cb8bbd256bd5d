/**
 * How relevant documents are to a query, without a model: BM25, which finds the words of the query and knows which of them
 * are rare, blended with the likeness of hashed words and character trigrams, which also sees other forms of a word.
 */
import { Effect } from "effect"
import { slices } from "../../shared/provider/local/Slices.ts"
import { cosine, textVector } from "../../shared/provider/local/TextVector.ts"
import { contentWords } from "../../shared/provider/local/Words.ts"

/** BM25's usual constants: how soon a repeated word stops counting, and how much long documents are marked down. */
const saturation = 1.2
const lengthWeight = 0.75

/** Enough coordinates that unrelated texts hardly meet. */
const dimensions = 1_024

/** Work between two pauses, in characters: a few milliseconds. A document costs some however short it is. */
const charactersAtOnce = 16_384
const charactersPerDocument = 256

interface Reading {
  /** In words. */
  readonly length: number
  /** How often each word of the query occurs; only those that do. */
  readonly counts: ReadonlyMap<string, number>
  /** With the query, 0 to 1. */
  readonly likeness: number
}

/**
 * The relevance of each document, 0 to 1, in their order. It is meant for comparing documents of one request: how much a
 * word counts depends on how many of them have it. Lets other work run every few milliseconds.
 */
export const relevance = Effect.fnUntraced(function*(query: string, documents: ReadonlyArray<string>) {
  const pause = pacing()
  const wanted = new Set<string>()
  for (const slice of slices(query, charactersAtOnce)) {
    for (const word of contentWords(slice)) wanted.add(word)
    yield* pause(slice.length)
  }
  const queryVector = yield* textVector(query, dimensions)
  const readings: Array<Reading> = []
  for (const document of documents) {
    const counts = new Map<string, number>()
    let length = 0
    for (const slice of slices(document, charactersAtOnce)) {
      for (const word of contentWords(slice)) {
        length++
        if (wanted.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1)
      }
      yield* pause(slice.length)
    }
    const likeness = Math.max(0, cosine(queryVector, yield* textVector(document, dimensions)))
    readings.push({ length, counts, likeness })
    yield* pause(charactersPerDocument)
  }
  return yield* blend(wanted, readings)
})

/** Counts work, and pauses where it was enough. */
const pacing = () => {
  let inOneGo = 0
  return (characters: number): Effect.Effect<void> => {
    inOneGo += characters
    if (inOneGo < charactersAtOnce) return Effect.void
    inOneGo = 0
    return Effect.yieldNow
  }
}

/** Either kind of evidence makes a document relevant, and both make it more so. */
const blend = Effect.fnUntraced(function*(wanted: ReadonlySet<string>, readings: ReadonlyArray<Reading>) {
  const pause = pacing()
  const holders = new Map<string, number>()
  let words = 0
  for (const { counts, length } of readings) {
    for (const word of counts.keys()) holders.set(word, (holders.get(word) ?? 0) + 1)
    words += length
    yield* pause(counts.size)
  }
  const rarity = (word: string): number => {
    const held = holders.get(word) ?? 0
    return Math.log(1 + (readings.length - held + 0.5) / (held + 0.5))
  }
  /** What a document of average length scores that has every word of the query once. */
  const whole = wanted.values().reduce((sum, word) => sum + rarity(word), 0)
  const meanLength = Math.max(1, words / readings.length)

  const scores: Array<number> = []
  for (const { counts, length, likeness } of readings) {
    const norm = saturation * (1 - lengthWeight + lengthWeight * length / meanLength)
    let score = 0
    for (const [word, count] of counts) score += rarity(word) * count * (saturation + 1) / (count + norm)
    const found = whole === 0 ? 0 : 1 - Math.exp(-2 * score / whole)
    scores.push(Math.min(1, 1 - (1 - found) * (1 - likeness)))
    yield* pause(counts.size)
  }
  return scores
})
