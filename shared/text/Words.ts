/** Splits text into words, in the same way for every built-in engine. */

/** English words that occur in every text and say little about it. */
export const functionWords = new Set(
  `
  a about after again all also am an and any are as at be because been before being but by can could did do does each for
  from had has have he her his how i if in into is it its just let me more most much must my no not of off on one only or
  other our out over own she should so some such than that the their them then there these they this those to too under
  until up us very was we were what when where which while who whom whose why will with without would you your s t d ll re
`.trim().split(/\s+/u)
)

/** Words, and runs of the scripts that put no spaces between words. */
const pattern =
  /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]+)|[\p{L}\p{M}\p{N}]+/gu

/**
 * The words of a text that carry meaning, in order, in lower case and without the most common English endings, so that `prices`,
 * `priced` and `pricing` are one word. In scripts without spaces, each pair of neighbouring characters counts as a word.
 */
export const contentWords = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const [word, run] of text.normalize("NFKC").toLowerCase().matchAll(pattern)) {
    if (run !== undefined) {
      const characters = [...run]
      for (let at = 0; at < Math.max(1, characters.length - 1); at++) found.push(characters.slice(at, at + 2).join(""))
    } else if (!functionWords.has(word)) {
      found.push(word.length > 3 ? word.replace(/(?:ies|ing|ed|es|e|s|y)$/u, "") : word)
    }
  }
  return found
}
