/**
 * Finds the values of named fields in a text: by their label (`subject: Lunch`), by their kind (an email address, a date), and
 * by the words before them (`from Berlin`). Each value goes to one field only, the one that it suits best.
 */
import { contentWords, functionWords } from "../../shared/text/Words.ts"

export interface Field {
  readonly name: string
  readonly description: string
  readonly format: string | undefined
  /** The names of the other fields of the same object. */
  readonly others: ReadonlyArray<string>
  /** Whether the field needs a value, and whether it is the only one for a number. Either allows a number without a label. */
  readonly isNeeded: boolean
  readonly isOnlyNumber: boolean
}

/** Maximum spans of one kind, and fields to find values for. They limit a search to a twentieth of a second. */
const mostSpans = 100
const mostFields = 100

interface Span {
  readonly at: number
  readonly text: string
}

const month = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.?"
const weekday = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"

/**
 * Patterns of spans; a span is the whole match or its first group. Nothing inside a span matches a later pattern. The names are
 * JSON Schema's formats where the text fits them.
 */
const patterns = {
  email: /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/gu,
  uri: /(?<!\w)https?:\/\/[^\s<>"']{0,2000}[\w/]/gu,
  date: /(?<![\w-])\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\w-])/gu,
  day: new RegExp(
    `(?<!\\w)(?:\\d{1,2}[./]\\d{1,2}[./]\\d{4}|${month} \\d{1,2}(?:st|nd|rd|th)?(?!\\d|:)(?:,? \\d{4})?|` +
      `\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}(?:,? \\d{4})?|(?:(?:next|this) )?${weekday}|today|tonight|tomorrow|` +
      `next (?:week|month|year))(?!\\w)`,
    "giu"
  ),
  clock: /(?<![\w:])(?:\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\b)?|\d{1,2} ?[ap]m\b|noon\b|midnight\b)/giu,
  phone: /(?<![\w+])(?:\+\d{7,15}|(?:\+\d{1,3}|\(?\d{2,5}\)?)(?:[ -]\d{2,8}){2,5})(?![\w-])/gu,
  code:
    /(?<![\w-])(?=[\p{Lu}\d-]{0,20}\d)[\p{Lu}\d]{1,20}(?:-[\p{Lu}\d]{1,20}){1,4}(?![\w-])|(?<![\w-])\p{Lu}{1,5}\d{2,12}(?!\w)/gu,
  number: /(?<![\w.-])-?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,10})?(?![\w-])/gu
}

/** Patterns of spans that may contain other spans. `place` matches places in lower case. */
const loosePatterns = {
  quote: /["“]([^"“”\n]{1,2000})["”]/gu,
  place:
    /(?<!\p{L})(?:in|near|around)\s+(?!the\b|an?\b)(\p{Ll}+(?: (?!today|tonight|tomorrow|please|next)\p{Ll}+){0,2})/gu
}

/** How well a name suits a field, by the words before the name: `^` for the start of a sentence, `""` for all other words. */
type Cues = Readonly<Record<string, number>>

interface Kind {
  /** Matches the names of fields of this kind. */
  readonly names: RegExp
  readonly patterns?: ReadonlyArray<keyof typeof patterns>
  /** Present if names are values of this kind. */
  readonly cues?: Cues
  /** Words that introduce a value of this kind. */
  readonly lead?: string
  /** Whether a value may have several sentences. */
  readonly isLong?: boolean
}

const place: Cues = { in: 3, near: 3, around: 3, at: 2, visit: 2, weather: 2, "weather for": 2, to: 1, from: 1 }
const person: Cues = { "^": 2, "": 1, is: 3, am: 3, called: 3, named: 3, with: 2, for: 2, from: 0.5, in: 0, at: 0 }
const sender: Cues = { "": 0.5, from: 4, to: 0 }
const receiver: Cues = { "": 0.5, to: 4, from: 0, for: 1, with: 1, tell: 2, ask: 2, email: 2, message: 2, in: 0, at: 0 }
const kinds: ReadonlyArray<Kind> = [
  { names: /\be?-?mails?\b/u, patterns: ["email"] },
  { names: /\b(?:urls?|uri|links?|website|homepage)\b/u, patterns: ["uri"] },
  { names: /\b(?:phone|telephone|mobile|fax)\b/u, patterns: ["phone"] },
  { names: /\b(?:dates?|day|birthday|deadline|due|when|until|since)\b/u, patterns: ["date", "day"] },
  { names: /\btime\b/u, patterns: ["clock"] },
  { names: /^(?:from|sender|origin|departure|source)\b/u, patterns: ["email"], cues: sender, lead: "from" },
  { names: /^(?:to|cc|bcc|recipient|destination|arrival)s?\b/u, patterns: ["email"], cues: receiver, lead: "to" },
  { names: /\b(?:city|cities|locations?|places?|countr\w+|town|state|region|where|venue|address)\b/u, cues: place },
  { names: /\b(?:company|organi[sz]ation|employer|brand)\b/u, cues: { at: 3, for: 1, joined: 2, by: 1 } },
  { names: /\b(?:subject|title|topic|event|project|task|file)\b/u, lead: "about|titled|called|named|regarding" },
  { names: /\b(?:body|message|content|note|comment|text|reply)\b/u, lead: "saying|that says|says", isLong: true },
  { names: /\b(?:id|code|number|reference|sku|zip)\b/u, patterns: ["code", "number"] },
  {
    names: /\b(?:names?|person|people|user|customer|client|author|guests?|passenger|\w+(?:cipants?|endees?))\b/u,
    cues: person
  }
]

/** Words that begin sentences with a capital and are not names. */
const openings = new Set(
  `send email mail book call tell ask invite schedule add create find get show set please hi hello dear thanks remind order buy
  write translate search look make give use check reserve cancel update let plan meet transfer pay fly say pick take open visit
  weather flight lunch dinner breakfast name city date subject title body message tags score email`.split(/\s+/u)
)
const word = /(?:(?:Mr|Mrs|Ms|Dr|Prof|St)\. )?\p{Lu}[\p{L}\p{M}-]*(?:['’](?!s\b)\p{L}+)?/gu
const joined = /^(?: (?:(?:de|da|del|di|la|van|von|der|of) )?\p{Lu}|, \p{Lu}{2}$)/u
const asSubject =
  /^(?:['’]s\b|,|\s*\(|\s+(?:is|was|are|lives|has|have|and|works|said|says|wants|needs|will|from|asks|asked)\b|$)/u

/** Words in names of fields that are too general to be labels of values. */
const generic = new Set("id name number text value of the to from in at date time user email".split(" "))

const wordsOf = (name: string): string =>
  name.slice(0, 100).replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()

const kindOf = (name: string, description = ""): Kind | undefined => {
  const head =
    description.slice(0, 200).toLowerCase().split(/[,.;:(]| (?:of|for|to|that|in|with|about|from) /u, 1)[0] ?? ""
  return [wordsOf(name), head].flatMap((words) => kinds.find(({ names }) => names.test(words)) ?? [])[0]
}

/** The labels of fields as alternatives of a pattern, the longest first; `(?!)`, which never matches, if they have none. */
const labelsOf = (names: ReadonlyArray<string>): string =>
  [...new Set(names.flatMap((name) => [wordsOf(name), ...wordsOf(name).split(" ").filter((word) => word.length > 2)]))]
    .filter((label) => label !== "" && !generic.has(label)).toSorted((a, b) => b.length - a.length).join("|") || "(?!)"

export class Facts {
  readonly text: string
  readonly #spans = new Map<string, ReadonlyArray<Span>>()
  /** Where the values that fields have taken begin in the text. */
  readonly #taken = new Set<number>()
  #fields = 0

  constructor(text: string) {
    this.text = text
    const isCovered = new Uint8Array(text.length)
    for (const [name, pattern] of Object.entries(patterns)) {
      const found = spansIn(text, pattern).filter(({ at }) => isCovered[at] === 0).slice(0, mostSpans)
      for (const { at, text } of found) isCovered.fill(1, at, at + text.length)
      this.#spans.set(name, found)
    }
    for (const [name, pattern] of Object.entries(loosePatterns)) this.#spans.set(name, spansIn(text, pattern))
    this.#spans.set("name", namesIn(text, isCovered).slice(0, mostSpans))
  }

  /** The value of a text field, if the text holds one. */
  string(field: Field): string | undefined {
    if (++this.#fields > mostFields) return undefined
    if (field.format !== undefined) return this.#take(this.#free(field.format)[0])
    const kind = kindOf(field.name, field.description)
    return this.#take(
      this.#labelled(field, kind) ?? this.#ofKind(field, kind) ?? (isFree(kind) ? this.#free("quote")[0] : undefined)
    )
  }

  /** The items of a list that the text introduces by the field's label. */
  list(name: string): ReadonlyArray<string> {
    const labels = labelsOf([name, name.replace(/s$/u, "")])
    const start = new RegExp(`(?<![\\p{L}\\p{N}])(?:${labels})(?::| are| is)\\s+`, "iu").exec(this.text)
    if (start === null) return []
    const [items = ""] = this.text.slice(start.index + start[0].length).split(/\.(?:\s|$)|[\n;!?]/u, 1)
    return items.split(/\s*(?:,|\band\b|&)\s*/u).filter((item) => item !== "")
  }

  /** The number next to the field's label, or else, if the field allows it, the first number next to no other field's label. */
  number(field: Field, fits: (value: number) => boolean): number | undefined {
    if (++this.#fields > mostFields) return undefined
    const valueOf = ({ text }: Span): number => Number(text.replaceAll(",", ""))
    const free = this.#free("number").filter((span) => fits(valueOf(span)))
    const isBeside = (labels: ReadonlyArray<string>) => {
      const stems = new Set(labels.flatMap((label) => contentWords(wordsOf(label))))
      return (span: Span): boolean => contentWords(this.#beside(span)).some((word) => stems.has(word))
    }
    const isForeign = isBeside(field.others)
    const span = free.find(isBeside([field.name, field.description.slice(0, 100)])) ??
      (field.isNeeded || field.isOnlyNumber ? free.find((span) => !isForeign(span)) : undefined)
    this.#take(span)
    return span && valueOf(span)
  }

  /** The spans that no field has taken. */
  #free(name: string): ReadonlyArray<Span> {
    return (this.#spans.get(name) ?? []).filter(({ at }) => !this.#taken.has(at))
  }

  #take(span: Span | undefined): string | undefined {
    if (span !== undefined) this.#taken.add(span.at)
    return span?.text
  }

  /** The three words before a number and the two after it, within the sentence. */
  #beside({ at, text }: Span): string {
    const before = this.text.slice(Math.max(0, at - 40), at).split(/[.,;!?\n]\s|\d/u).at(-1) ?? ""
    const after = this.text.slice(at + text.length, at + text.length + 40).split(/[.,;:!?\n]|\d/u, 1)[0] ?? ""
    return [...before.split(/\s+/u).slice(-4), ...after.split(/\s+/u).slice(0, 3)].join(" ").replaceAll("_", " ")
  }

  /** The value after the field's label, or after words that introduce a value of its kind. */
  #labelled(field: Field, kind: Kind | undefined): Span | undefined {
    const label = `(?i:${labelsOf([field.name])})(?i: line)?`
    const starts = [
      `${label}\\s*(?::|=|\\b(?:is|are|should be|will be|of|called|named)\\b)\\s*`,
      `(?i:with) (?:the |a )?${label}\\s+`,
      ...kind?.cues === undefined ? [`${label}\\s+(?=["“'#\\p{Lu}\\d])`] : [],
      `(?i:${kind?.lead ?? "(?!)"})\\s+(?:that |the )?`
    ]
    for (const start of starts) {
      const found = new RegExp(`(?<![\\p{L}\\p{N}])${start}`, "u").exec(this.text)
      if (found === null) continue
      const from = found.index + found[0].length
      const near = this.#ofPatterns(kind).find(({ at }) => at >= from && at <= from + 4)
      if (near !== undefined) return near
      if (kind?.patterns !== undefined) continue
      const text = this.#valueFrom(from, field, kind)
      if (text !== "" && !this.#taken.has(from)) return { at: from, text }
    }
    return undefined
  }

  /** A quoted text, or the text up to another field's label. Unless its kind is long, it also ends with its clause. */
  #valueFrom(from: number, { others }: Field, kind: Kind | undefined): string {
    const rest = this.text.slice(from)
    const quoted = /^["“']([^"”\n]{1,2000}?)["”'](?!\p{L})/u.exec(rest)?.[1]
    if (quoted !== undefined) return quoted
    const leads = others.flatMap((name) => kindOf(name)?.lead ?? [])
    const labels = [labelsOf(others), ...leads.map((lead) => `(?:${lead})(?=\\s)`)].join("|")
    const ends = [
      `\\n|[,;.]?\\s+(?:(?:and|with)\\s+)?(?:(?:the|a|an|my)\\s+)?(?:${labels})(?!\\p{L})`,
      ...kind?.isLong === true ? [] : ["[.!?;](?=\\s|$)|,(?=\\s)|\\s(?:and|with)\\s"]
    ]
    const end = new RegExp(ends.join("|"), "iu").exec(rest)?.index
    return rest.slice(0, end).trim()
  }

  /** The free spans that look like values of a kind. Names count only if none of its patterns matches. */
  #ofPatterns(kind: Kind | undefined): ReadonlyArray<Span> {
    const typed = kind?.patterns?.flatMap((pattern) => this.#free(pattern)) ?? []
    return kind?.cues === undefined || typed.length > 0 ? typed : this.#free("name")
  }

  /** The span that suits the field best, unless another field suits it better. */
  #ofKind({ isNeeded, others }: Field, kind: Kind | undefined): Span | undefined {
    const rivals = others.map((other) => kindOf(other)?.cues ?? {})
    const [best] = this.#ofPatterns(kind).flatMap((span) => {
      const cue = cueBefore(this.text, span)
      const score = kind?.cues === undefined ? Infinity : suits(kind.cues, cue)
      return score > 0 && rivals.every((rival) => suits(rival, cue) <= score) ? [{ span, score }] : []
    }).toSorted((a, b) => b.score - a.score)
    return best?.span ?? (isNeeded && kind?.cues === place ? this.#free("place")[0] : undefined)
  }
}

const spansIn = (text: string, pattern: RegExp): ReadonlyArray<Span> =>
  Array.from(text.matchAll(pattern), ({ 0: whole, 1: group = whole, index: at }) => ({ at, text: group }))

const namesIn = (text: string, isCovered: Uint8Array): ReadonlyArray<Span> => {
  const names: Array<{ at: number; text: string }> = []
  for (const { 0: found, index: at } of text.matchAll(word)) {
    const base = found.toLowerCase().split(/['’]/u, 1)[0]!
    if (isCovered[at] === 1 || openings.has(base) || functionWords.has(base)) continue
    const last = names.at(-1)
    const end = last === undefined ? 0 : last.at + last.text.length
    if (last !== undefined && joined.test(text.slice(end, at + found.length))) {
      last.text = text.slice(last.at, at + found.length)
    } else names.push({ at, text: found })
  }
  return names.filter(({ at, text: name }) =>
    !isOpening(text, at) || asSubject.test(text.slice(at + name.length, at + name.length + 20))
  )
}

const isOpening = (text: string, at: number): boolean => /(?:^|[.!?\n]\s*)$/u.test(text.slice(Math.max(0, at - 3), at))

/** The one or two words before a span; `^` at the beginning of a sentence. */
const cueBefore = (text: string, { at }: Span): string => {
  if (isOpening(text, at)) return "^"
  return (/(?:\p{L}+\s+)?\p{L}+(?=\s+(?:the\s+)?$)/u.exec(text.slice(Math.max(0, at - 40), at))?.[0] ?? "")
    .toLowerCase()
}

const suits = (cues: Cues, before: string): number =>
  cues[before] ?? cues[before.split(/\s+/u).at(-1) ?? ""] ?? cues[""] ?? 0

/** Whether any text can be of this kind. */
const isFree = (kind: Kind | undefined): boolean => kind?.patterns === undefined && kind?.cues === undefined

/** Whether a field without a label in the text gets the whole text: the only field of its object, or one such as `query`. */
export const takesWholeText = ({ name, others }: Pick<Field, "name" | "others">): boolean =>
  others.length === 0
    ? isFree(kindOf(name))
    : /\b(?:query|question|prompt|input|text|note|answer|summary|request|content)\b/u.test(wordsOf(name))
