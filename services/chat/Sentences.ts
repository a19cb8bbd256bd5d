/** Cuts text into sentences, and knows which of its words name a subject. */
import { slices } from "../../shared/provider/local/Slices.ts"
import { contentWords, isFunctionWord, stem } from "../../shared/provider/local/Words.ts"

// One language for all, so that the answer does not depend on the machine's locale.
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" })

/** The segmenter takes the full stop of these for the end of a sentence. */
const abbreviation =
  /(?:^|[\s("“])(?:dr|mr|mrs|ms|prof|st|jr|sr|no|nos|fig|vol|vs|e\.g|i\.e|etc|cf|approx|dept|est|inc|ltd|co|p|pp|\p{Lu})\.\s*$/iu

/** A line that was broken for its width only: the next one goes on in lower case. */
const softBreak = /([^\n.!?:;])\n(?=\p{Ll})/gu

/** What marks a line as heading, list item or quotation in Markdown. */
const lineMarker = /^\s*(?:#{1,6}|[-*+•>]|\d{1,3}[.)])\s+/u

/** The sentences of a text, trimmed, without line markers, in their order. No empty ones. */
export const splitSentences = (text: string): ReadonlyArray<string> => {
  const sentences: Array<string> = []
  let open = ""
  for (const { segment } of segmenter.segment(text.replace(softBreak, "$1 "))) {
    open += segment
    if (!segment.includes("\n") && abbreviation.test(segment)) continue
    const sentence = open.replace(lineMarker, "").replace(/\s+/gu, " ").trim()
    if (sentence !== "") sentences.push(sentence)
    open = ""
  }
  const rest = open.replace(/\s+/gu, " ").trim()
  if (rest !== "") sentences.push(rest)
  return sentences
}

/** The text up to `max` characters, cut between words where it can, with an ellipsis where something is left out. */
export const clip = (text: string, max: number): string => {
  if (text.length <= max) return text
  const [head = ""] = slices(text.slice(0, max), max - 1)
  return `${head.trimEnd()}…`
}

/** Words of a request that say what to do with the text, not what it is about. */
const taskWords = new Set(
  `
  please tell say explain describe summarise summarize summary summaries sum tldr gist overview recap outline list give
  show find extract quote answer question following text document passage article paragraph sentence sentences word words
  short shortly brief briefly context based according using use write read main key point points bullet bullets
  two three four five page content contents
`.trim().split(/\s+/u)
)

const taskStems = new Set(Array.from(taskWords, stem))

/** The content words of a question that its subject is made of. */
export const topicWords = (question: string): ReadonlyArray<string> =>
  contentWords(question).filter((word) => !taskStems.has(word))

/** Whether a word alone at the head of a sentence is no name: function words and words of request. */
export const isCommonWord = (word: string): boolean => {
  const lower = word.toLowerCase()
  return isFunctionWord(lower) || taskWords.has(lower) || taskStems.has(stem(lower))
}

/** Where a phrase stands in a text as whole words, or -1. Looks at its first hundred places. */
export const wordIndex = (text: string, phrase: string): number => {
  if (phrase.trim() === "") return -1
  let at = text.indexOf(phrase)
  for (let looked = 0; at !== -1 && looked < 100; looked++, at = text.indexOf(phrase, at + 1)) {
    if (!/[\p{L}\p{N}_]/u.test(`${text[at - 1] ?? ""}${text[at + phrase.length] ?? ""}`)) return at
  }
  return -1
}
