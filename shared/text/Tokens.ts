/** Counts tokens, and splits text into pieces of a few tokens, in the o200k_base encoding. */
import { Effect } from "effect"
import { setTimeout as pause } from "node:timers/promises"
import { slices } from "./Slices.ts"

export interface Piece {
  readonly text: string
  readonly tokens: number
}

export interface Tokenizer {
  /** Counts the tokens of a short text: takes about a microsecond per token, without a pause. */
  readonly count: (text: string) => number
  /** The words of a text, each of one to a few tokens, with the space or mark before it. Concatenated, they are the text. */
  readonly pieces: (text: string) => Iterable<Piece>
  /** The longest head of a piece that has at most this many tokens. May be empty. */
  readonly head: (piece: string, tokens: number) => string
  /**
   * The tokens of many texts together. Yields to other work between slices of 2 KiB.
   *
   * Exact for the first 100,000 characters, except that a run of more than 256 characters without a space may count one token too many
   * per 256 characters. The rest is estimated at the same number of characters per token.
   */
  readonly countAll: (texts: ReadonlyArray<string>) => Effect.Effect<number>
}

const countedCharacters = 100_000
const sliceCharacters = 2_048

// Merging a word's bytes takes time quadratic in its length, so no piece may be long.
const longRun = /(\S{256}|\s{256})/u

// Text that looks like a special token is text like any other.
const asText = { disallowedSpecial: new Set<string>() }

/**
 * The tokenizer. Its table takes 45 MB. It is loaded on first use, so that a worker that never uses its built-in engine saves the
 * memory, and kept for the life of the process. The first request waits a quarter of a second for it.
 */
export const loadTokenizer: Effect.Effect<Tokenizer> = Effect.promise(() => loading ??= load())

/** One for the process, because of its memory: the tokenizer keeps nothing of the texts. */
let loading: Promise<Tokenizer> | undefined

const load = async (): Promise<Tokenizer> => {
  // Loads in two halves, each of which blocks the event loop for an eighth of a second of CPU time, or much longer on a busy machine.
  // Pings are answered in between, because ingress considers a worker dead that is silent for too long.
  await import("gpt-tokenizer/bpeRanks/o200k_base")
  await pause(1)
  const { countTokens, decode, encodeGenerator, setMergeCacheSize } = await import("gpt-tokenizer/encoding/o200k_base")
  // No cache: a hit in the library's full cache takes 0.1 ms, ten times as long as the merge that it saves.
  setMergeCacheSize(0)

  const count = (text: string): number =>
    text.split(longRun).reduce((tokens, run) => tokens + (run === "" ? 0 : countTokens(run, asText)), 0)

  const pieces = function*(text: string): Generator<Piece> {
    for (const slice of slices(text, sliceCharacters)) {
      for (const run of slice.split(longRun)) {
        // The decoder would keep half a character for its next caller, but a piece never ends in one.
        for (const tokens of encodeGenerator(run, asText)) yield { text: decode(tokens), tokens: tokens.length }
      }
    }
  }

  const head = (piece: string, tokens: number): string => {
    const characters = tokens === 0 ? [] : [...piece]
    while (count(characters.join("")) > tokens) characters.pop()
    return characters.join("")
  }

  const countAll = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
    const characters = texts.reduce((sum, text) => sum + text.length, 0)
    let [counted, tokens, sincePause] = [0, 0, 0]
    for (const text of texts) {
      for (const slice of slices(text.slice(0, countedCharacters - counted), sliceCharacters)) {
        tokens += count(slice)
        counted += slice.length
        sincePause += slice.length
        if (sincePause < sliceCharacters / 2) continue
        sincePause = 0
        yield* Effect.yieldNow
      }
      if (counted >= countedCharacters) break
    }
    return counted === characters ? tokens : Math.round(tokens * characters / counted)
  })

  return { count, pieces, head, countAll }
}
