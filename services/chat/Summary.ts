/** Summarises a conversation in its own sentences, for a model that continues it. */
import { Effect } from "effect"
import { slices } from "../../shared/text/Slices.ts"
import { contentWords } from "../../shared/text/Words.ts"
import { clip } from "./Text.ts"

export interface Source {
  readonly text: string
  readonly origin: "instructions" | "user" | "assistant" | "tool"
}

/** The most characters read of the conversation and of the instructions, and kept of a sentence. */
const readCharacters = 1_000_000
const instructionCharacters = 20_000
const sentenceCharacters = 400
const sliceCharacters = 16_384

const mostSentences = 60

/** The user's own messages are kept beside the summary. */
const weights: { readonly [O in Source["origin"]]: number } = { instructions: 2, user: 1, assistant: 3, tool: 2 }

const heading = "Summary of the conversation up to here:"

/** The same language on every machine. */
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" })

/** Markdown's marks of a heading, list item or quotation. */
const lineMarker = /^\s*(?:#{1,6}|[-*+•>]|\d{1,3}[.)])\s+/u

/**
 * Up to 60 sentences in the order of the conversation, a line each, below a heading: first those that share words with
 * `instructions`, which may be empty, then by their origin, the latest first. Questions are left out. Yields to other work.
 */
export const summarise = Effect.fnUntraced(function*(sources: ReadonlyArray<Source>, instructions: string) {
  const wanted = new Set(contentWords(instructions.slice(0, instructionCharacters)))
  const scores = new Map<string, number>()
  let left = readCharacters
  for (const { origin, text } of sources) {
    for (const slice of slices(text.slice(0, left), sliceCharacters)) {
      for (const { segment } of segmenter.segment(slice)) {
        const sentence = clip(segment.replace(lineMarker, "").replace(/\s+/gu, " ").trim(), sentenceCharacters)
        if (sentence === "" || sentence === heading || /[?？]["”»)]*$/u.test(sentence)) continue
        const shared = wanted.size === 0 ? 0 : contentWords(sentence).filter((word) => wanted.has(word)).length
        scores.set(sentence, shared * 4 + weights[origin])
      }
      yield* Effect.yieldNow
    }
    left -= Math.min(left, text.length)
  }
  const ranked = Array.from(scores, ([sentence, score], order) => ({ sentence, score, order }))
    .toSorted((a, b) => b.score - a.score || b.order - a.order).slice(0, mostSentences)
  return [heading, ...ranked.toSorted((a, b) => a.order - b.order).map(({ sentence }) => `- ${sentence}`)].join("\n")
})
