/** Finds values in a text that fit a named field: what stands behind its label, names, numbers, words of a list. */
import { isCommonWord, wordIndex } from "./Sentences.ts"

/** Characters of the text that are searched. */
const searchedCharacters = 8_000

/** What stands between a label and its value, and the line from there. */
const labelEnd =
  /["'*_]{0,3}(?:\s{0,4}([:=])\s{0,4}|\s{1,4}(?:is|are|was|were|should be|set to)\s{1,4})["'“*]{0,3}(?=([^\n]{1,400}))/giu
const labelWords = /[\p{L}\p{N}]+(?:[ _-][\p{L}\p{N}]+){0,3}$/u
const longestLabel = 80

const quoted = /["“«]([^"”»\n]{1,120})["”»]/gu
const name =
  /(?<![\p{L}\p{N}])\p{Lu}[\p{L}\p{M}\p{N}'’-]*(?:(?: (?:of|de|du|von|van|la|le|the))? \p{Lu}[\p{L}\p{M}\p{N}'’-]*)*/gu
const phrase =
  /\b(?:in|for|about|at|near|of|on|to|from) (?:the |a |an |my |your )?((?:(?!(?:in|for|about|at|near|of|on|to|from|is|and|then|with|please)\b)[\p{L}\p{M}'’-]+(?: |$|(?=[?.!,;:\n]))){1,5})(?!\d)/giu
const calendar =
  /\b(?:(?:\d{1,2}\.? )?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,2}(?:st|nd|rd|th)?)?(?:,? \d{4})?|\d{4}-\d{2}-\d{2}|(?:next |this )?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|today|tonight|tomorrow|yesterday)\b/u
/** A word at a sentence's head is a name rather than any word where this follows. */
const afterName = /^(?:'s| and \p{Lu}| (?:is|was|are|were|has|had|lives?|works?|went|will|can|wants?|likes?)\b)/u
const number = /(?<![\p{L}\p{N}.,])-?\d+(?:[.,]\d+)*(?![\p{L}\p{N}])|(?<=[$€£¥])\d+(?:[.,]\d+)*/gu
const negation = /(?:\b(?:no|not|without|never|don't|doesn't|isn't|disable|exclude|off)\b)[^.,;\n]{0,20}$/iu

const calendarFields = /(?:^|_)(?:date|day|when|month|deadline)$|(?:Date|Day)$/u

/** What precedes the value of a field of this name. */
const directions: ReadonlyArray<readonly [field: RegExp, cue: RegExp]> = [
  [/^(?:from(?![a-z])|origin|source|start|departure)/u, /\bfrom\s+$/iu],
  [/^(?:to(?![a-z])|dest|target|recipient|arrival|end)/u, /\bto\s+$/iu],
  [/^(?:city|town|place|location|country|region|where|venue|address)/u, /\b(?:in|at|near|to|from|for|of)\s+$/iu]
]

/** Values of a list that are looked for in the text. */
const comparedValues = 200

/** A value with its label, as in `name: Anna`. */
interface Label {
  /** The line from the value on. */
  readonly line: string
  /** Whether a sign stands between them and not a verb. */
  readonly sure: boolean
}

export class Facts {
  readonly #text: string
  /** By the words before the value. */
  readonly #labels: ReadonlyMap<string, Label>
  readonly #names: ReadonlyArray<{ readonly value: string; readonly at: number }>
  /** What follows prepositions: names are often typed in small letters. */
  readonly #phrases: ReadonlyArray<string>
  readonly #numbers: ReadonlyArray<number>
  readonly #usedNames = new Set<string>()
  readonly #usedNumbers = new Set<number>()

  constructor(text: string) {
    this.#text = text.slice(0, searchedCharacters)
    this.#labels = readLabels(this.#text)
    this.#names = readNames(this.#text)
    this.#phrases = Array.from(this.#text.matchAll(phrase), (match) => (match[1] as string).trim())
    this.#numbers = Array.from(this.#text.matchAll(number), ([digits]) => readNumber(digits))
  }

  /** What stands behind `name:`, `name =` or `name is`. */
  labelled(field: string): string | undefined {
    const line = this.#labels.get(fieldWords(field).join(" "))?.line
    const value = line?.split(/["”;]|[.,!?](?:\s|$)|\s(?:and|but)\s/u)[0]?.replace(/[*'\s]{1,9}$/u, "")
    return value === undefined || value === "" ? undefined : value
  }

  /** The next number that nobody took yet; a labelled one first. */
  number(field: string, fits: (value: number) => boolean): number | undefined {
    const digits = this.labelled(field)?.match(number)?.[0]
    if (digits !== undefined && fits(readNumber(digits))) return readNumber(digits)
    const next = this.#numbers.findIndex((value, i) => !this.#usedNumbers.has(i) && fits(value))
    if (next !== -1) this.#usedNumbers.add(next)
    return this.#numbers[next]
  }

  /** The next name or quoted phrase that nobody took yet; where the field says from or to, the one behind that word. */
  name(field: string): string | undefined {
    if (calendarFields.test(field)) {
      const day = this.match(calendar)
      if (day !== undefined) return day
    }
    const cue = directions.find(([direction]) => direction.test(field))?.[1]
    const free = this.#names.filter(({ value }) => !this.#usedNames.has(value))
    const found = free.find(({ at }) => cue?.test(this.#text.slice(Math.max(0, at - 12), at)) === true) ?? free[0]
    const value = found?.value ?? this.#phrases.find((phrase) => !this.#usedNames.has(phrase))
    if (value !== undefined) this.#usedNames.add(value)
    return value
  }

  /** The items behind `name:`. Empty where there is no such label. */
  list(field: string): ReadonlyArray<string> {
    const label = this.#labels.get(fieldWords(field).join(" "))
    if (label?.sure !== true) return []
    const items = label.line.split(/[.\]](?:\s|$)/u)[0]?.replace(/^\[/u, "").split(/,|;|\band\b/u) ?? []
    return items.map((item) => item.replace(/^["'\s]{1,9}|["'\s]{1,9}$/gu, "")).filter((item) => item !== "")
  }

  /** The names and quoted phrases of the text. */
  names(): ReadonlyArray<string> {
    return this.#names.map(({ value }) => value)
  }

  /** Which of the values the text mentions first. */
  mentioned(values: ReadonlyArray<string>): string | undefined {
    const text = this.#text.toLowerCase()
    const places = values.slice(0, comparedValues).map((value) => ({
      value,
      at: wordIndex(text, value.toLowerCase().replace(/[_-]/gu, " "))
    }))
    return places.filter(({ at }) => at !== -1).toSorted((a, b) => a.at - b.at)[0]?.value
  }

  /** Whether the text speaks for or against a field; `undefined` where it does not mention it. */
  boolean(field: string): boolean | undefined {
    const label = this.labelled(field)?.toLowerCase()
    if (label !== undefined && /^(?:true|yes|on|1)\b/u.test(label)) return true
    if (label !== undefined && /^(?:false|no|off|0)\b/u.test(label)) return false
    const phrase = fieldWords(field).filter((word) => !/^(?:is|has|include|with|use)$/u.test(word)).join(" ")
    const at = phrase === "" ? -1 : wordIndex(this.#text.toLowerCase(), phrase)
    return at === -1 ? undefined : !negation.test(this.#text.slice(Math.max(0, at - 40), at))
  }

  /** The first part of the text that looks like this. The pattern must be the engine's own. */
  match(pattern: RegExp): string | undefined {
    return pattern.exec(this.#text)?.[0]
  }
}

/** `firstName` and `first_name` as the words `first` and `name`. */
export const fieldWords = (field: string): ReadonlyArray<string> =>
  field.slice(0, 64).replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) =>
    word !== ""
  ).slice(0, 8)

const readLabels = (text: string): ReadonlyMap<string, Label> => {
  const labels = new Map<string, Label>()
  for (const { 1: sign, 2: line = "", index } of text.matchAll(labelEnd)) {
    const before = labelWords.exec(text.slice(Math.max(0, index - longestLabel), index))?.[0] ?? ""
    const words = fieldWords(before)
    for (let first = Math.max(0, words.length - 4); first < words.length; first++) {
      const label = words.slice(first).join(" ")
      if (!labels.has(label)) labels.set(label, { line, sure: sign !== undefined })
    }
  }
  return labels
}

const readNumber = (digits: string): number =>
  Number(
    /^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/u.test(digits)
      ? digits.replaceAll(",", "")
      : digits.replace(/[.,]$/u, "").replace(",", ".")
  )

/** Quoted phrases and names in the order of the text, then words that may be names but stand at a sentence's head. */
const readNames = (text: string): ReadonlyArray<{ readonly value: string; readonly at: number }> => {
  const sure: Array<{ value: string; at: number }> = []
  const unsure: Array<{ value: string; at: number }> = []
  for (const match of text.matchAll(quoted)) sure.push({ value: match[1] as string, at: match.index + 1 })
  for (const match of text.matchAll(name)) {
    const at = match.index
    if (sure.some((phrase) => at >= phrase.at && at < phrase.at + phrase.value.length)) continue
    const words = match[0].split(" ")
    if (calendar.test(match[0])) continue
    const atHead = /(?:^|[.!?:\n]["”]?\s*)$/u.test(text.slice(Math.max(0, at - 4), at))
    if (!isCommonWord(words[0] as string)) {
      ;(atHead && !afterName.test(text.slice(at + match[0].length, at + match[0].length + 12)) ? unsure : sure).push({
        value: match[0],
        at
      })
    } else if (words.length > 1) {
      sure.push({ value: words.slice(1).join(" "), at: at + (words[0] as string).length + 1 })
    }
  }
  return [...sure.toSorted((a, b) => a.at - b.at), ...unsure]
}
