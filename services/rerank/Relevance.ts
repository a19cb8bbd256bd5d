/**
 * How relevant documents are to a query, without a model: how many of its words they hold, rare ones counting more, and
 * the likeness of hashed words and trigrams, which also sees other forms of a word.
 */
import { Effect } from "effect"
import { slices } from "../../shared/text/Slices.ts"
import { cosine, textVector } from "../../shared/text/TextVector.ts"
import { contentWords } from "../../shared/text/Words.ts"

/** Enough coordinates that unrelated texts hardly meet. */
const dimensions = 1_024

/** Work between two pauses, in characters: a few milliseconds. A document costs some however short it is. */
const charactersAtOnce = 16_384
const charactersPerDocument = 256

/** The share of the query's words, by their rarity, that makes a document this relevant by itself. */
const weightOfWords = 0.9

/**
 * The relevance of each document, 0 to 1, in their order. It is meant for comparing documents of one request: how much a
 * word counts depends on how many of them have it. Lets other work run every few milliseconds.
 */
export const relevance = Effect.fnUntraced(function*(query: string, documents: ReadonlyArray<string>) {
  const wanted = new Set<string>()
  for (const slice of slices(query, charactersAtOnce)) {
    for (const word of contentWords(slice)) wanted.add(word)
    yield* Effect.yieldNow
  }
  const queryVector = yield* textVector(query, dimensions)
  const holders = new Map<string, number>()
  const readings: Array<{ readonly found: ReadonlySet<string>; readonly likeness: number }> = []
  let inOneGo = 0
  for (const document of documents) {
    const found = new Set<string>()
    for (const slice of slices(document, charactersAtOnce)) {
      for (const word of contentWords(slice)) if (wanted.has(word)) found.add(word)
      inOneGo += slice.length
      if (inOneGo >= charactersAtOnce) yield* Effect.yieldNow
      inOneGo %= charactersAtOnce
    }
    for (const word of found) holders.set(word, (holders.get(word) ?? 0) + 1)
    readings.push({ found, likeness: Math.max(0, cosine(queryVector, yield* textVector(document, dimensions))) })
    inOneGo += charactersPerDocument
  }
  const rarities = new Map(Array.from(wanted, (word) => {
    const held = holders.get(word) ?? 0
    return [word, Math.log(1 + (documents.length - held + 0.5) / (held + 0.5))]
  }))
  const sum = (words: Iterable<string>): number => {
    let total = 0
    for (const word of words) total += rarities.get(word) ?? 0
    return total
  }
  const whole = sum(wanted) || 1
  const scores: Array<number> = []
  for (const { found, likeness } of readings) {
    scores.push(1 - (1 - weightOfWords * sum(found) / whole) * (1 - Math.min(1, likeness)))
    if (scores.length % 1_024 === 0) yield* Effect.yieldNow
  }
  return scores
})
