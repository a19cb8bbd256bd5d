/** Summarises a conversation in its own sentences, for a model that continues it. */
import { Effect } from "effect"
import type { JobError } from "../../shared/contract/JobError.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import type { Call } from "../../shared/provider/call/Protocol.ts"
import { slices } from "../../shared/text/Slices.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import { contentWords } from "../../shared/text/Words.ts"
import { clip } from "./Text.ts"

export interface Source {
  readonly text: string
  readonly origin: "instructions" | "user" | "assistant" | "tool"
}

/** Summarises a conversation. `instructions`, which may be empty, say what to focus on. */
export type Summarise = (
  call: Call,
  sources: ReadonlyArray<Source>,
  instructions: string
) => Effect.Effect<{ readonly text: string; readonly usage: Usage }, JobError>

/** Maximum characters read of the conversation and of the instructions, and kept of a sentence. */
const readCharacters = 1_000_000
const instructionCharacters = 20_000
const sentenceCharacters = 400
const sliceCharacters = 16_384

/** A quarter of the sentences is kept, but at least 5 and at most 60. */
const sentencesPerKept = 4
const fewest = 5
const most = 60

/** Weights of sentences by origin. The user's messages weigh less, because they are kept beside the summary. */
const weights: { readonly [O in Source["origin"]]: number } = { instructions: 1, user: 0.4, assistant: 2, tool: 1 }

const heading = "Summary of the conversation up to here:"

/** A fixed language, so that the result is the same on every machine. */
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" })

/** Markdown's marks of a heading, list item or quotation. */
const lineMarker = /^\s*(?:#{1,6}|[-*+•>]|\d{1,3}[.)])\s+/u

/**
 * The sentences with the most common words of the conversation, in their order, one per line below a heading. Sentences that
 * share words with `instructions`, which may be empty, rank first; questions are left out. Yields to other work.
 */
export const summarise = Effect.fnUntraced(function*(sources: ReadonlyArray<Source>, instructions: string) {
  const sentences = new Map<string, { readonly words: ReadonlySet<string>; readonly weight: number }>()
  const counts = new Map<string, number>()
  let left = readCharacters
  for (const { origin, text } of sources) {
    for (const slice of slices(text.slice(0, left), sliceCharacters)) {
      for (const { segment } of segmenter.segment(slice)) {
        const sentence = clip(segment.replace(lineMarker, "").replace(/\s+/gu, " ").trim(), sentenceCharacters)
        if (sentence === heading || /[?？]["”»)]*$/u.test(sentence) || sentences.has(sentence)) continue
        const words = new Set(contentWords(sentence))
        if (words.size === 0) continue
        for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
        sentences.set(sentence, { words, weight: weights[origin] })
      }
      yield* Effect.yieldNow
    }
    left -= Math.min(left, text.length)
  }
  const wanted = new Set(contentWords(instructions.slice(0, instructionCharacters)))
  const ranked = Array.from(sentences, ([sentence, { weight, words }], order) => {
    let score = 0
    for (const word of words) {
      const share = counts.get(word)! / sentences.size
      score += weight * share / words.size + (wanted.has(word) ? 3 * (1 - share) : 0)
    }
    return { sentence, order, score }
  })
  const limit = Math.min(most, Math.max(fewest, Math.ceil(ranked.length / sentencesPerKept)))
  const chosen = ranked.toSorted((a, b) => b.score - a.score || a.order - b.order).slice(0, limit)
  return [heading, ...chosen.toSorted((a, b) => a.order - b.order).map(({ sentence }) => `- ${sentence}`)].join("\n")
})

/** Summarises without a model, for the built-in engine. */
export const extract: Summarise = Effect.fnUntraced(function*(_call, sources, instructions) {
  const text = yield* summarise(sources, instructions)
  const tokenizer = yield* loadTokenizer
  const inputTokens = yield* tokenizer.countAll([instructions, ...sources.map(({ text }) => text)])
  const outputTokens = yield* tokenizer.countAll([text])
  return { text, usage: { inputTokens, outputTokens, inputTextTokens: inputTokens, outputTextTokens: outputTokens } }
})
