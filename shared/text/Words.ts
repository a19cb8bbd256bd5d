/** Cuts text into words, alike for every built-in engine. */

const functionWords = new Set(
  `
  a an the this that these those some any each every either neither both all few many much more most other another such
  i me my mine we us our you your yours he him his she her hers it its they them their theirs one ones
  am is are was were be been being do does did done doing have has had having will would shall should can could may might
  must and or but nor so yet if then else than because while although though as at by for from in into of off on onto out
  over to too up with within without about above after again against before below between down during under until
  who whom whose which what when where why how there here not no yes only own same just also very s t d ll re ve m
  let lets get got
`.trim().split(/\s+/u)
)

export const isFunctionWord = (word: string): boolean => functionWords.has(word)

/** Runs of scripts that put no spaces between words. */
const unspaced =
  "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}]+"
const wordPattern = new RegExp(`(${unspaced})|[\\p{L}\\p{M}\\p{N}]+`, "gu")

/** Drops the commonest English endings, so that `prices`, `priced` and `pricing` are one word. */
export const stem = (word: string): string => {
  let stem = word
  if (stem.length > 4 && stem.endsWith("ies")) stem = `${stem.slice(0, -3)}y`
  else if (stem.length > 3 && /[^sui]s$/u.test(stem)) stem = stem.slice(0, -1)
  if (stem.length > 5) stem = stem.replace(/(?:ing|ed)$/u, "").replace(/([bdgklmnprt])\1$/u, "$1")
  return stem.length > 4 && stem.endsWith("e") ? stem.slice(0, -1) : stem
}

export interface Word {
  /** In lower case. */
  readonly text: string
  /** A run of a script that puts no spaces between words. */
  readonly isUnspaced: boolean
}

/** The words of a text in their order. */
export function* words(text: string): Generator<Word> {
  for (const [match, unspaced] of text.toLowerCase().matchAll(wordPattern)) {
    yield { text: match, isUnspaced: unspaced !== undefined }
  }
}

/** The stems of the words that carry meaning, in their order; pairs of characters where a script has no spaces. */
export const contentWords = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const { isUnspaced, text: word } of words(text)) {
    if (isUnspaced) { for (const pair of pairs(word)) found.push(pair) }
    else if (!isFunctionWord(word)) found.push(stem(word))
  }
  return found
}

/** The pairs of neighbouring characters; the character itself where there is but one. */
export const pairs = (run: string): ReadonlyArray<string> => {
  const characters = [...run]
  if (characters.length === 1) return [run]
  return characters.slice(1).map((character, before) => `${characters[before]}${character}`)
}
