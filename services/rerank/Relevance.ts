/**
 * Relevance of documents to a query without a model: the share of the query's words that a document contains, with rare
 * words counting more, and the similarity of hashed words and trigrams, which also matches other forms of a word.
 */
import { Effect } from "effect"
import { slices } from "../../shared/text/Slices.ts"
import { textVector } from "../../shared/text/TextVector.ts"
import { contentWords } from "../../shared/text/Words.ts"

/** Enough coordinates that unrelated texts hardly ever collide. */
const dimensions = 1_024

/** Characters between two pauses: a few milliseconds of work. A document adds a fixed cost, also in characters. */
const charactersAtOnce = 16_384
const charactersPerDocument = 256

/** The relevance of a document that contains all words of the query and is not similar otherwise. */
const weightOfWords = 0.9

/**
 * The relevance of each document, 0 to 1, in their order, for comparing documents of one request: the weight of a word
 * depends on how many of them contain it. Yields to other work every few milliseconds.
 */
export const relevance = Effect.fnUntraced(function*(query: string, documents: ReadonlyArray<string>) {
  let sincePause = 0
  const wordsIn = Effect.fnUntraced(function*(text: string, among?: ReadonlySet<string>) {
    const found = new Set<string>()
    for (const slice of slices(text, charactersAtOnce)) {
      for (const word of contentWords(slice)) if (among?.has(word) !== false) found.add(word)
      sincePause += slice.length
      if (sincePause >= charactersAtOnce) yield* Effect.yieldNow
      sincePause %= charactersAtOnce
    }
    sincePause += charactersPerDocument
    return found
  })
  const wanted = yield* wordsIn(query)
  const queryVector = yield* textVector(query, dimensions)
  const holders = new Map(Array.from(wanted, (word) => [word, 0]))
  const readings: Array<{ readonly found: ReadonlySet<string>; readonly similarity: number }> = []
  for (const document of documents) {
    const found = yield* wordsIn(document, wanted)
    for (const word of found) holders.set(word, holders.get(word)! + 1)
    const vector = yield* textVector(document, dimensions)
    readings.push({ found, similarity: vector.reduce((sum, value, at) => sum + value * queryVector[at]!, 0) })
  }
  const rarities = new Map(
    Array.from(holders, ([word, held]) => [word, Math.log(1 + (documents.length - held + 0.5) / (held + 0.5))] as const)
  )
  const weigh = (words: ReadonlySet<string>): number =>
    words.values().reduce((sum, word) => sum + rarities.get(word)!, 0)
  const whole = weigh(wanted) || 1
  return yield* Effect.forEach(readings, ({ found, similarity }, at) => {
    const score = 1 - (1 - weightOfWords * weigh(found) / whole) * (1 - Math.min(1, Math.max(0, similarity)))
    return at % 1_024 === 0 ? Effect.as(Effect.yieldNow, score) : Effect.succeed(score)
  })
})
