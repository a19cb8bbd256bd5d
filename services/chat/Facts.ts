/**
 * Finds the values of named fields in a text: by their label (`subject: Lunch`), by their kind (an email address, a date), and
 * by the words before them (`from Berlin`). No two fields get the same value, and none gets one that suits another better.
 */
import { contentWords, functionWords } from "../../shared/text/Words.ts"

export interface Field {
  readonly name: string
  readonly description: string
  readonly format: string | undefined
  /** The names of the other fields of the same object. */
  readonly others: ReadonlyArray<string>
  /** Whether it needs a value, and whether it is the only field with a number: both allow a number without a label. */
  readonly isNeeded: boolean
  readonly isOnlyNumber: boolean
}

/** Limits on the spans of one kind, and on the fields whose values are looked for: a twentieth of a second. */
const mostSpans = 100
const mostFields = 100

interface Span {
  readonly at: number
  readonly text: string
}

const month = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.?"
const weekday = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"

/** What a span looks like. A part of one that comes earlier in this list is no span of its own. */
const patterns = {
  email: /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/gu,
  url: /(?<!\w)https?:\/\/[^\s<>"']{0,2000}[\w/]/gu,
  isoDate: /(?<![\w-])\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\w-])/gu,
  date: new RegExp(
    `(?<!\\w)(?:\\d{1,2}[./]\\d{1,2}[./]\\d{4}|${month} \\d{1,2}(?:st|nd|rd|th)?(?!\\d|:)(?:,? \\d{4})?|` +
      `\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}(?:,? \\d{4})?|(?:(?:next|this) )?${weekday}|today|tonight|tomorrow|` +
      `next (?:week|month|year))(?!\\w)`,
    "giu"
  ),
  time: /(?<![\w:])(?:\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\b)?|\d{1,2} ?[ap]m\b|noon\b|midnight\b)/giu,
  phone: /(?<![\w+])(?:\+\d{7,15}|(?:\+\d{1,3}|\(?\d{2,5}\)?)(?:[ -]\d{2,8}){2,5})(?![\w-])/gu,
  code:
    /(?<![\w-])(?=[\p{Lu}\d-]{0,20}\d)[\p{Lu}\d]{1,20}(?:-[\p{Lu}\d]{1,20}){1,4}(?![\w-])|(?<![\w-])\p{Lu}{1,5}\d{2,12}(?!\w)/gu,
  number: /(?<![\w.-])-?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,10})?(?![\w-])/gu
}
type Pattern = keyof typeof patterns

/** By JSON Schema's name of a format. */
const formats: ReadonlyMap<string, Pattern> = new Map([
  ["email", "email"],
  ["uri", "url"],
  ["url", "url"],
  ["date", "isoDate"]
])

/** How well a name suits a field, by the words before it; `^` begins a sentence as its subject, and others are ``. */
type Cues = Readonly<Record<string, number>>

interface Kind {
  /** What the names of its fields contain. */
  readonly names: RegExp
  readonly patterns?: ReadonlyArray<Pattern>
  readonly cues?: Cues
  /** Words that a text of this kind follows. */
  readonly lead?: string
}

const cuesOf = (text: string): Cues =>
  Object.fromEntries(
    text.split(" ").map((cue) => [(cue.split(":", 1)[0] ?? "").replace("_", " "), Number(cue.split(":")[1])])
  )

const place = cuesOf("in:3 near:3 around:3 at:2 visit:2 weather:2 weather_for:2 weather_of:2 to:1 from:1")
const person = cuesOf("^:2 :1 is:3 am:3 m:3 called:3 named:3 with:2 for:2 by:2 from:0.5 in:0 at:0 near:0")
const receiver = cuesOf(":0.5 to:4 from:0 for:1 with:1 tell:2 ask:2 email:2 message:2 text:2 in:0 at:0")
const kinds: ReadonlyArray<Kind> = [
  { names: /\be?-?mails?\b/u, patterns: ["email"], cues: cuesOf(":1 to:2") },
  { names: /\b(?:urls?|uri|links?|website|homepage)\b/u, patterns: ["url"] },
  { names: /\b(?:phone|telephone|mobile|fax)\b/u, patterns: ["phone"] },
  { names: /\b(?:dates?|day|birthday|deadline|due|when|until|since)\b/u, patterns: ["isoDate", "date"] },
  { names: /\btime\b/u, patterns: ["time"] },
  { names: /^(?:from|sender|origin|departure|source)\b/u, patterns: ["email"], cues: cuesOf(":0.5 from:4 to:0") },
  { names: /^(?:to|cc|bcc|recipients?|receiver|destination|arrival)\b/u, patterns: ["email"], cues: receiver },
  { names: /\b(?:city|cities|locations?|places?|countr\w+|town|state|region|where|venue|address)\b/u, cues: place },
  { names: /\b(?:company|organi[sz]ation|employer|brand)\b/u, cues: cuesOf("at:3 for:1 joined:2 by:1") },
  { names: /\b(?:subject|title|topic|event|project|task|file)\b/u, lead: "about|titled|called|named|regarding" },
  { names: /\b(?:body|message|content|note|comment|text|reply)\b/u, lead: "saying|that says|that reads|says" },
  { names: /\b(?:id|code|number|reference|sku|zip)\b/u, patterns: ["code", "number"] },
  {
    names: /\b(?:names?|person|people|user|customer|client|author|guests?|passenger|\w+(?:cipants?|endees?))\b/u,
    cues: person
  }
]

/** Words in capitals at the beginning of a sentence that are no names. */
const openings = new Set(
  `send email mail book call tell ask invite schedule add create find get show set please hi hello dear thanks remind order buy
  write translate search look make give use check reserve cancel update let plan meet transfer pay fly say pick take open visit
  weather flight lunch dinner breakfast name city date subject title body message tags score email`.split(/\s+/u)
)
const word = /(?:(?:Mr|Mrs|Ms|Dr|Prof|St)\. )?\p{Lu}[\p{L}\p{M}-]*(?:['’](?!s\b)\p{L}+)?/gu
const joined = /^(?: (?:(?:de|da|del|di|la|van|von|der|of) )?\p{Lu}|, \p{Lu}{2}$)/u
const asSubject =
  /^(?:['’]s\b|,|\s*\(|\s+(?:is|was|are|lives|has|have|and|works|said|says|wants|needs|will|from|asks|asked)\b|$)/u

/** Words in names of fields that are no labels of values. */
const generic = new Set("id name number text value of the to from in at date time user email".split(" "))

const wordsOf = (name: string): string =>
  name.slice(0, 100).replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()

const kindOf = (name: string, description = ""): Kind | undefined => {
  const head =
    description.slice(0, 200).toLowerCase().split(/[,.;:(]| (?:of|for|to|that|in|with|about|from) /u, 1)[0] ?? ""
  return [wordsOf(name), head].flatMap((words) => kinds.find(({ names }) => names.test(words)) ?? [])[0]
}

/** The labels of a field as alternatives of a pattern, the longest first. Empty if it has none. */
const labelsOf = (names: ReadonlyArray<string>): string =>
  [...new Set(names.flatMap((name) => [wordsOf(name), ...wordsOf(name).split(" ").filter((word) => word.length > 2)]))]
    .filter((label) => label !== "" && !generic.has(label)).toSorted((a, b) => b.length - a.length).join("|")

export class Facts {
  readonly #text: string
  readonly #spans: Readonly<Record<Pattern | "name", ReadonlyArray<Span>>>
  /** The places of the values that fields have got. */
  readonly #taken = new Set<number>()
  #fields = 0

  constructor(text: string) {
    this.#text = text
    const isCovered = new Uint8Array(text.length)
    const spans = Object.fromEntries(
      Object.entries(patterns).map(([name, pattern]) => {
        const found = Array.from(text.matchAll(pattern), ({ 0: text, index: at }) => ({ at, text }))
          .filter(({ at }) => isCovered[at] === 0).slice(0, mostSpans)
        for (const { at, text } of found) isCovered.fill(1, at, at + text.length)
        return [name, found]
      })
    ) as unknown as Record<Pattern, ReadonlyArray<Span>>
    this.#spans = { ...spans, name: namesIn(text, isCovered) }
  }

  /** The value of a text field, if the text holds one. */
  string(field: Field): string | undefined {
    if (this.#fields++ > mostFields) return undefined
    if (field.format !== undefined) {
      const pattern = formats.get(field.format)
      return pattern && this.#take(this.#spans[pattern].find(({ at }) => !this.#taken.has(at)))
    }
    const kind = kindOf(field.name, field.description)
    return this.#labelled(field, kind) ?? this.#ofKind(field, kind) ?? this.#quoted(kind)
  }

  /** The items of a list that the text introduces by the field's label. */
  list(name: string): ReadonlyArray<string> {
    const labels = labelsOf([name, name.replace(/s$/u, "")])
    if (labels === "") return []
    const start = new RegExp(`(?<![\\p{L}\\p{N}])(?:${labels})(?::| are| is)\\s+`, "iu").exec(this.#text)
    const rest = start === null
      ? ""
      : this.#text.slice(start.index + start[0].length).split(/\.(?:\s|$)|[\n;!?]/u, 1)[0] ?? ""
    return rest.split(/\s*(?:,|\band\b|&)\s*/u).filter((item) => item !== "")
  }

  /** The number that has the field's label beside it; for a field that may go without, the first that has no other's. */
  number(
    { isNeeded, isOnlyNumber, name, description, others }: Field,
    fits: (value: number) => boolean
  ): number | undefined {
    if (this.#fields++ > mostFields) return undefined
    const free = this.#spans.number.map(({ at, text }) => ({ at, text, value: Number(text.replaceAll(",", "")) }))
      .filter(({ at, value }) => !this.#taken.has(at) && fits(value))
    const own = stemsOf([name, description.slice(0, 100), ...(/\bage\b/u.test(wordsOf(name)) ? ["years old"] : [])])
    const foreign = stemsOf(others.filter((other) => other !== name))
    const isNear = (stems: ReadonlySet<string>) => ({ at, text }: Span): boolean =>
      contentWords(this.#beside(at, text)).some((word) => stems.has(word))
    const span = free.find(isNear(own)) ??
      (isNeeded || isOnlyNumber ? free.find((span) => !isNear(foreign)(span)) : undefined)
    this.#take(span)
    return span?.value
  }

  #take(span: Span | undefined): string | undefined {
    if (span !== undefined) this.#taken.add(span.at)
    return span?.text
  }

  /** The three words before a number and the two after it, within the sentence. */
  #beside(at: number, text: string): string {
    const before = this.#text.slice(Math.max(0, at - 40), at).split(/[.,;!?\n]\s|\d/u).at(-1) ?? ""
    const after = this.#text.slice(at + text.length, at + text.length + 40).split(/[.,;:!?\n]|\d/u, 1)[0] ?? ""
    return [...before.split(/\s+/u).slice(-4), ...after.split(/\s+/u).slice(0, 3)].join(" ").replaceAll("_", " ")
  }

  /** What follows the field's label, or the words that lead to a text of its kind, up to the label of another field. */
  #labelled(field: Field, kind: Kind | undefined): string | undefined {
    const labels = labelsOf([field.name])
    const is = "\\s*(?::|=|\\b(?:is|are|should be|will be|of|called|named)\\b)\\s*"
    const starts = [
      ...labels === ""
        ? []
        : [`(?i:with (?:the |a )?(?:${labels})(?: line)?(?:${is}|\\s+))`, `(?i:(?:${labels})(?: line)?${is})`],
      ...labels === "" || kind?.cues !== undefined ? [] : [`(?i:${labels})\\s+(?=["“'#\\p{Lu}\\d])`],
      ...kind?.lead === undefined ? [] : [`(?i:${kind.lead})\\s+(?:that |the )?`]
    ]
    for (const start of starts) {
      const found = new RegExp(`(?<![\\p{L}\\p{N}])${start}`, "u").exec(this.#text)
      if (found === null) continue
      const from = found.index + found[0].length
      if (kind?.patterns !== undefined || kind?.cues !== undefined) {
        const near = this.#spansOf(kind).find(({ at }) => at >= from && at <= from + 4)
        if (near !== undefined && !this.#taken.has(near.at)) return this.#take(near)
        if (kind.patterns !== undefined) continue
      }
      const text = this.#valueFrom(from, field, kind)
      if (text !== "" && !this.#taken.has(from)) return this.#take({ at: from, text })
    }
    return undefined
  }

  #valueFrom(from: number, { name, others }: Field, kind: Kind | undefined): string {
    const rest = this.#text.slice(from)
    const quoted = /^["“']([^"”\n]{1,2000}?)["”'](?!\p{L})/u.exec(rest)?.[1]
    if (quoted !== undefined) return quoted
    const labels = labelsOf(others.filter((other) => other !== name))
    const prepositions = others.flatMap((name) => Object.entries(kindOf(name)?.cues ?? {}))
      .flatMap(([cue, score]) => score >= 3 && /^(?:to|from)$/u.test(cue) ? [cue] : [])
    const leads = others.flatMap((name) => kindOf(name)?.lead ?? [])
    const ends = [
      "\\n",
      ...labels === "" ? [] : [`[,;.]?\\s+(?:(?:and|with)\\s+)?(?:(?:the|a|an|my)\\s+)?(?:${labels})(?!\\p{L})`],
      ...[...prepositions, ...leads].map((cue) => `[,;.]?\\s+(?:and\\s+)?(?:${cue})\\s`),
      ...kind?.lead?.includes("says") === true ? [] : ["[.!?;](?=\\s|$)", ",(?=\\s)", "\\s(?:and|with)\\s"]
    ]
    const end = new RegExp(ends.join("|"), "iu").exec(rest)?.index ?? rest.length
    return rest.slice(0, end).trim()
  }

  #spansOf({ cues, patterns: own = [] }: Kind): ReadonlyArray<Span> {
    const typed = own.flatMap((pattern) => this.#spans[pattern])
    return cues === undefined || typed.length > 0 || own.length > 0 && own[0] !== "email" ? typed : this.#spans.name
  }

  /** The span that suits the field best, unless another field suits it better. */
  #ofKind({ isNeeded, name, others }: Field, kind: Kind | undefined): string | undefined {
    if (kind === undefined || (kind.patterns === undefined && kind.cues === undefined)) return undefined
    const rivals = others.filter((other) => other !== name).map((other) => kindOf(other)?.cues ?? {})
    let best: Span | undefined
    let most = 0
    for (const span of this.#spansOf(kind)) {
      const before = cueBefore(this.#text, span)
      const score = suits(kind.cues, before)
      if (score <= most || this.#taken.has(span.at)) continue
      if (this.#spans.name.includes(span) && rivals.some((rival) => suits(rival, before) > score)) continue
      best = span
      most = score
    }
    return this.#take(best ?? (isNeeded ? this.#lowerCase(kind) : undefined))
  }

  /** A place that the client did not write in capitals. */
  #lowerCase({ cues = {} }: Kind): Span | undefined {
    const places = Object.keys(cues).filter((cue) => cues[cue]! >= 3 && cue !== "to" && functionWords.has(cue))
    if (places.length === 0) return undefined
    const found = new RegExp(`(?<!\\p{L})(?:${places.join("|")})\\s+(\\p{Ll}+(?: \\p{Ll}+){0,2})`, "u").exec(this.#text)
    const text = found?.[1]?.split(/ (?=today|tonight|tomorrow|please|next)/u, 1)[0] ?? ""
    return found === null || text === "" ? undefined : { at: found.index, text }
  }

  #quoted(kind: Kind | undefined): string | undefined {
    if (kind !== undefined && kind.lead === undefined) return undefined
    const quotes = this.#text.matchAll(/["“]([^"“”\n]{1,2000})["”]/gu)
    return this.#take(
      quotes.map(({ 1: text = "", index: at }) => ({ at, text })).find(({ at }) => !this.#taken.has(at))
    )
  }
}

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

const suits = (cues: Cues | undefined, before: string): number =>
  cues === undefined ? 1 : cues[before] ?? cues[before.split(/\s+/u).at(-1) ?? ""] ?? cues[""] ?? 0

/** Whether a field that the text does not name gets the whole text: the only one of its object, or one such as `query`. */
export const takesWholeText = ({ name, others }: Pick<Field, "name" | "others">): boolean =>
  others.every((other) => other === name)
    ? kindOf(name)?.lead !== undefined || kindOf(name) === undefined
    : /\b(?:query|question|prompt|input|text|note|answer|summary|request|content)\b/u.test(wordsOf(name))

const stemsOf = (names: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(names.flatMap((name) => contentWords(wordsOf(name))))
