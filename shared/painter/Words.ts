/** Reads a prompt: which words it holds, and which of them it rules out. */

export interface Words {
  /** In lower case and, where they end in a plural's s, without it as well. */
  readonly wanted: ReadonlySet<string>
  /** What stands behind `no` and `without`, or in the negative prompt. */
  readonly unwanted: ReadonlySet<string>
}

const negations = new Set(["no", "not", "without", "excluding", "except", "minus", "sans"])
/** What may stand between a negation and the word it is about. */
const between = new Set(["a", "an", "any", "the", "of", "and", "or", "single", "visible"])

/** Scripts without spaces between words are looked through for the words of the lexicon one character and two at a time. */
const ideographs = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/

const split = (text: string): ReadonlyArray<string> =>
  (text.toLowerCase().normalize("NFKC").match(/[\p{L}\p{N}'-]+|[.,;:!?]/gu) ?? []).flatMap((word) => {
    if (!ideographs.test(word)) return [word]
    const characters = Array.from(word)
    return [...characters, ...characters.slice(1).map((character, at) => `${characters[at]}${character}`)]
  })

/** A word as it stands, and its singular. */
const formsOf = (word: string): ReadonlyArray<string> => {
  const forms = [word]
  if (word.endsWith("ies")) forms.push(`${word.slice(0, -3)}y`)
  if (word.endsWith("es")) forms.push(word.slice(0, -2))
  if (word.endsWith("s")) forms.push(word.slice(0, -1))
  return forms
}

export const readWords = (prompt: string, negativePrompt: string): Words => {
  const wanted = new Set<string>()
  const unwanted = new Set(split(negativePrompt).flatMap(formsOf))
  let negated = false
  for (const word of split(prompt)) {
    if (/^[.,;:!?]$/.test(word)) negated = false
    else if (negations.has(word)) negated = true
    else if (!between.has(word)) {
      for (const form of formsOf(word)) (negated ? unwanted : wanted).add(form)
      negated = false
    }
  }
  for (const word of unwanted) wanted.delete(word)
  return { wanted, unwanted }
}

export const holdsAny = (words: ReadonlySet<string>, any: ReadonlyArray<string>): boolean =>
  any.some((word) => words.has(word))
