/** Finds the sentences of a text that answer a question, by BM25, or that stand for the whole, by their centrality. */
import { Effect } from "effect"
import { slices } from "../../shared/provider/local/Slices.ts"
import { contentWords } from "../../shared/provider/local/Words.ts"
import { clip, splitSentences } from "./Sentences.ts"

/** Who brought a text into the conversation. */
export type Origin = "instructions" | "user" | "assistant" | "tool"

export interface Source {
  readonly text: string
  readonly origin: Origin
}

/** A sentence that may be quoted. */
export interface Passage {
  readonly text: string
  readonly origin: Origin
  /** The number of its source. */
  readonly source: number
  /** Where it stands among all passages. */
  readonly order: number
  readonly words: ReadonlyArray<string>
}

/** Best first. */
export type Ranking = ReadonlyArray<{ readonly passage: Passage; readonly score: number }>

/** Characters that are read of all sources together unless said otherwise; of one that is too long, its head and tail. */
const readCharacters = 200_000
const sliceCharacters = 16_384
const passageCharacters = 400

/** An order to the engine in its instructions is nothing to quote. */
const order =
  /^(?:you|your|always|never|do not|don't|please|answer|respond|reply|be|act|use|keep|if (?:you|the user|asked))\b/iu

const isQuotable = (sentence: string, source: Source): boolean => {
  const letters = sentence.match(/[\p{L}\p{M}\p{N}]/gu)?.length ?? 0
  return letters >= 6 && letters >= sentence.replace(/\s/gu, "").length / 2 &&
    !/[?？:]["”»)]*$/u.test(sentence) && !(source.origin === "instructions" && order.test(sentence))
}

/**
 * The quotable sentences of the sources, in their order. Where there is too much to read, the last source goes first,
 * then instructions, then the newer before the older. Lets other work run between slices of 16 KiB.
 */
export const readPassages = Effect.fnUntraced(function*(
  sources: ReadonlyArray<Source>,
  characters: number = readCharacters
) {
  const passages: Array<Passage> = []
  const seen = new Set<string>()
  let inOneGo = 0
  for (const [number, text] of allot(sources, characters).entries()) {
    const source = sources[number] as Source
    for (const slice of slices(text, sliceCharacters)) {
      for (const sentence of splitSentences(slice)) {
        const text = clip(sentence, passageCharacters)
        if (seen.has(text) || !isQuotable(text, source)) continue
        seen.add(text)
        const { origin } = source
        passages.push({ text, origin, source: number, order: passages.length, words: contentWords(text) })
      }
      inOneGo += slice.length
      if (inOneGo < sliceCharacters / 2) continue
      inOneGo = 0
      yield* Effect.yieldNow
    }
  }
  return passages as ReadonlyArray<Passage>
})

const allot = (sources: ReadonlyArray<Source>, characters: number): ReadonlyArray<string> => {
  const urgency = (number: number): number =>
    number === sources.length - 1 ? Infinity : sources[number]?.origin === "instructions" ? sources.length : number
  const texts = new Array<string>(sources.length).fill("")
  let left = characters
  for (const number of [...sources.keys()].toSorted((a, b) => urgency(b) - urgency(a))) {
    const text = ends(sources[number]?.text ?? "", left)
    texts[number] = text
    left = Math.max(0, left - text.length)
  }
  return texts
}

/** A text of at most `max` characters: its first two thirds and its last third where it has more. */
export const ends = (text: string, max: number): string => {
  if (text.length <= max) return text
  if (max < 3) return ""
  const tail = Math.floor(max / 3)
  return `${text.slice(0, max - tail - 1)}\n${text.slice(-tail)}`.toWellFormed()
}

/** Own earlier answers repeat the text they were taken from. */
const weight = (passage: Passage): number => passage.origin === "assistant" ? 0.5 : 1

/** BM25 of each passage against the words of a question. Passages that share no word with it are left out. */
export const rankByQuestion = (passages: ReadonlyArray<Passage>, question: ReadonlyArray<string>): Ranking => {
  const wanted = new Set(question)
  const holders = new Map<string, number>()
  /** How often each passage has which word of the question; only those that it has. */
  const counts = new Map<Passage, ReadonlyMap<string, number>>()
  let length = 0
  for (const passage of passages) {
    const times = new Map<string, number>()
    for (const word of passage.words) if (wanted.has(word)) times.set(word, (times.get(word) ?? 0) + 1)
    for (const word of times.keys()) holders.set(word, (holders.get(word) ?? 0) + 1)
    counts.set(passage, times)
    length += passage.words.length
  }
  const mean = length / Math.max(1, passages.length)
  return best(passages, (passage) => {
    let score = 0
    for (const [word, times] of counts.get(passage) ?? []) {
      const held = holders.get(word) ?? 0
      const rarity = Math.log(1 + (passages.length - held + 0.5) / (held + 0.5))
      score += rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * passage.words.length / mean))
    }
    return score * weight(passage)
  })
}

/** How much of what the whole text keeps coming back to is in each passage; the first ones get a little more. */
export const rankByCentrality = (passages: ReadonlyArray<Passage>): Ranking => {
  const holders = new Map<string, number>()
  for (const { words } of passages) for (const word of new Set(words)) holders.set(word, (holders.get(word) ?? 0) + 1)
  return best(passages, (passage) => {
    let score = 0
    for (const word of new Set(passage.words)) score += Math.log(holders.get(word) ?? 1)
    return (0.1 + score / Math.sqrt(passage.words.length + 4)) * (1 + 0.5 / (1 + passage.order)) * weight(passage)
  })
}

const best = (passages: ReadonlyArray<Passage>, score: (passage: Passage) => number): Ranking =>
  passages.map((passage) => ({ passage, score: score(passage) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.passage.order - b.passage.order)

/** Passages that are looked at for those that say something new. */
const mostLookedAt = 1_000

/**
 * The best passages that come near the best one, at most `limit`, in the order of the text. `share` is how much of the
 * best score a passage must have, 0 to 1.
 */
export const choose = (ranking: Ranking, limit: number, share: number): ReadonlyArray<Passage> => {
  const top = ranking[0]?.score ?? 0
  const chosen: Array<Passage> = []
  for (const { passage, score } of ranking.slice(0, mostLookedAt)) {
    if (chosen.length === limit || score < top * share) break
    if (!chosen.some(({ text }) => text.includes(passage.text) || passage.text.includes(text))) chosen.push(passage)
  }
  return chosen.toSorted((a, b) => a.order - b.order)
}
