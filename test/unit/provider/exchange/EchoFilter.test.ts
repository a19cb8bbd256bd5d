/** What a continued answer repeats of its beginning. */
import { assert, describe, it } from "@effect/vitest"
import { EchoFilter } from "../../../../shared/provider/exchange/continuation/EchoFilter.ts"

/** The new text, for a continuation in pieces of each size. */
const freshOf = (text: string, said: string): ReadonlyArray<string> =>
  [1, 2, 3, 5, 100].map((size) => {
    const filter = new EchoFilter(text)
    const pieces = said.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []
    return text + pieces.map((piece) => filter.push(piece)).join("") + filter.end()
  })

const cases: ReadonlyArray<readonly [what: string, text: string, said: string, whole: string]> = [
  ["only the rest", "one two", " three", "one two three"],
  ["everything again", "one two", "one two three", "one two three"],
  ["everything again, with the space at its end", "one two ", "one two three", "one two three"],
  ["nothing but the beginning", "one two", "one two", "one two"],
  ["the space at its end again", "one two ", " three", "one two three"],
  ["other space than at its end", "one ", "\n\ntwo", "one \n\ntwo"],
  ["more space than at its end", "one\n", "\n\ntwo", "one\n\ntwo"],
  ["no space after its end", "one ", "two", "one two"],
  ["the rest of a word that was cut", "one tw", "o three", "one two three"],
  ["the whole word that was cut", "one tw", "two three", "one two three"],
  ["a word that begins like the beginning", "one two", " one two two", "one two one two two"],
  ["a word that is the last one again, on purpose", "say bye", "bye!", "say byebye!"],
  ["the beginning of the beginning", "one two", "one", "one twoone"],
  ["characters of several bytes", "eins zwei drei für", "eins zwei drei für 🙂 fünf", "eins zwei drei für 🙂 fünf"],
  ["nothing", "one", "", "one"]
]

describe("a continuation that says", () => {
  it.each(cases)("%s", (_, text, said, whole) => {
    assert.deepStrictEqual(new Set(freshOf(text, said)), new Set([whole]))
  })
})
