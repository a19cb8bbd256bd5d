/** Summarises a conversation in its own sentences, for a model that goes on with it. */
import { Effect } from "effect"
import { slices } from "../../shared/text/Slices.ts"
import { contentWords } from "../../shared/text/Words.ts"
import { clip, splitSentences } from "./Text.ts"

export interface Source {
  readonly text: string
  readonly origin: "instructions" | "user" | "assistant" | "tool"
}

/** Characters of the conversation that are read, and of one sentence that are kept. */
const readCharacters = 1_000_000
/** Characters of the instructions that are read. */
const instructionCharacters = 20_000
const sliceCharacters = 16_384
const sentenceCharacters = 400

/** One sentence in so many is kept, but no fewer and no more than this. */
const sentencesPerKept = 4
const fewest = 5
const most = 60

/** The user's own messages are kept beside the summary. */
const weights: { readonly [O in Source["origin"]]: number } = { instructions: 1, user: 0.4, assistant: 2, tool: 1 }

const heading = "Summary of the conversation up to here:"

/**
 * The sentences whose words the conversation repeats most, in its order, one to a line below a heading. Those that share
 * words with `instructions`, which may be empty, go first. Questions are left out. Lets other work run while it reads.
 */
export const summarise = Effect.fnUntraced(function*(sources: ReadonlyArray<Source>, instructions: string) {
  const sentences = new Map<string, { readonly words: ReadonlySet<string>; readonly weight: number }>()
  const counts = new Map<string, number>()
  let left = readCharacters
  for (const { origin, text } of sources) {
    for (const slice of slices(text.slice(0, left), sliceCharacters)) {
      for (const sentence of splitSentences(slice)) {
        const kept = clip(sentence, sentenceCharacters)
        if (kept === heading || /[?？]["”»)]*$/u.test(kept) || sentences.has(kept)) continue
        const words = new Set(contentWords(kept))
        if (words.size === 0) continue
        for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
        sentences.set(kept, { words, weight: weights[origin] })
      }
      yield* Effect.yieldNow
    }
    left -= Math.min(left, text.length)
  }
  const wanted = new Set(contentWords(instructions.slice(0, instructionCharacters)))
  const all = Math.max(1, sentences.size)
  const ranked = Array.from(sentences, ([text, { weight, words }], order) => {
    let [central, asked] = [0, 0]
    for (const word of words) {
      const share = (counts.get(word) ?? 0) / all
      central += share / words.size
      if (wanted.has(word)) asked += 1 - share
    }
    return { text, order, score: asked * 3 + weight * central }
  })
  const limit = Math.min(most, Math.max(fewest, Math.ceil(ranked.length / sentencesPerKept)))
  const chosen = ranked.toSorted((a, b) => b.score - a.score || a.order - b.order).slice(0, limit)
  return [heading, ...chosen.toSorted((a, b) => a.order - b.order).map(({ text }) => `- ${text}`)].join("\n")
})
