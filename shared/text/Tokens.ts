/** Token counts and token-sized pieces of text, in the o200k_base encoding. */
import { Effect } from "effect"
import { slices } from "./Slices.ts"

export interface Piece {
  readonly text: string
  readonly tokens: number
}

export interface Tokenizer {
  /** For short texts: takes about a microsecond per token, in one go. */
  readonly count: (text: string) => number
  /** The words of a text, each with the space or mark before it, one to a few tokens each. Together they are the text. */
  readonly pieces: (text: string) => Iterable<Piece>
  /** The longest head of a piece that has no more than this many tokens. May be empty. */
  readonly head: (piece: string, tokens: number) => string
  /**
   * The tokens of many texts together. Lets other work run between slices of 2 KiB.
   *
   * Exact for the first 100,000 characters, but for runs of more than 256 characters without a space, which cost a
   * token more per 256 characters at most. What lies beyond is estimated: it is taken to have as many characters per
   * token as the part that was counted.
   */
  readonly countAll: (texts: ReadonlyArray<string>) => Effect.Effect<number>
}

const countedCharacters = 100_000
const sliceCharacters = 2_048

// Merging a word's bytes takes the square of its length, so that no piece may be long.
const longRun = /(\S{256}|\s{256})/u

// Text that looks like a special token is text like any other.
const asText = { disallowedSpecial: new Set<string>() }

/**
 * The tokenizer. Its table is loaded at the first use and not with the service, because that takes about a fifth of a
 * second and 40 MB; it is then kept for the life of the process.
 */
export const loadTokenizer: Effect.Effect<Tokenizer> = Effect.promise(() => loading ??= load())

let loading: Promise<Tokenizer> | undefined

const load = async (): Promise<Tokenizer> => {
  const { countTokens, decode, encodeGenerator, setMergeCacheSize } = await import("gpt-tokenizer/encoding/o200k_base")
  // The library's cache of merged words keeps itself in order of use, in a Map. As it fills up, a hit comes to take
  // 0.1 ms, which is ten times the merge that it saves.
  setMergeCacheSize(0)

  const count = (text: string): number => {
    let tokens = 0
    for (const run of text.split(longRun)) if (run !== "") tokens += countTokens(run, asText)
    return tokens
  }

  const pieces = function*(text: string): Generator<Piece> {
    for (const slice of slices(text, sliceCharacters)) {
      for (const run of slice.split(longRun)) {
        // The decoder keeps half a character for its next caller; a whole piece never ends in one.
        for (const tokens of encodeGenerator(run, asText)) yield { text: decode(tokens), tokens: tokens.length }
      }
    }
  }

  const head = (piece: string, tokens: number): string => {
    const characters = tokens === 0 ? [] : [...piece]
    while (characters.length > 0) {
      const text = characters.join("")
      if (count(text) <= tokens) return text
      characters.pop()
    }
    return ""
  }

  const countAll = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
    const characters = texts.reduce((sum, text) => sum + text.length, 0)
    let counted = 0
    let tokens = 0
    let inOneGo = 0
    for (const text of texts) {
      for (const slice of slices(text.slice(0, countedCharacters - counted), sliceCharacters)) {
        tokens += count(slice)
        counted += slice.length
        inOneGo += slice.length
        if (inOneGo < sliceCharacters / 2) continue
        inOneGo = 0
        yield* Effect.yieldNow
      }
      if (counted >= countedCharacters) break
    }
    return counted === characters ? tokens : Math.round(tokens * characters / counted)
  })

  return { count, pieces, head, countAll }
}
