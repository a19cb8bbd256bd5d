/**
 * Makes strings that match the patterns of a JSON Schema.
 *
 * A pattern is a client's program: one that runs for ever must not stop the process. So a pattern is never run on a
 * text from outside, only on the short strings that were generated from it, and only after its text shows that neither
 * can take long.
 */
import { Arbitrary, Effect, Option, Predicate, Result, Schema } from "effect"

/** How many values of a schema are looked at for patterns, how many patterns are served, and how long they may be. */
const maxVisited = 5_000
const maxPatterns = 50
const maxPatternLength = 300
/** Characters that a match has at least. */
const maxMatchLength = 200
/** Times that a group with an open end may be demanded: each time multiplies the ways to divide a text among them. */
const maxAmbiguity = 4

/** A matching string for every pattern in a schema that one can be made for. `seed` selects which. */
export const samplePatterns = Effect.fnUntraced(function*(schema: unknown, seed: number) {
  const samples = new Map<string, string>()
  const open: Array<unknown> = [schema]
  for (let visited = 0; open.length > 0 && visited < maxVisited && samples.size < maxPatterns; visited++) {
    const next = open.pop()
    if (!Predicate.isObjectOrArray(next)) continue
    for (const value of Object.values(next)) open.push(value)
    if (Array.isArray(next) || typeof next.pattern !== "string" || samples.has(next.pattern)) continue
    const sample = yield* samplePattern(next.pattern, next.minLength, next.maxLength, seed)
    if (Option.isSome(sample)) samples.set(next.pattern, sample.value)
  }
  return samples as ReadonlyMap<string, string>
})

const samplePattern = Effect.fnUntraced(function*(source: string, least: unknown, most: unknown, seed: number) {
  const pattern = Result.try(() => new RegExp(source, "u"))
  if (Result.isFailure(pattern) || !isTame(source)) return Option.none<string>()
  let string = Schema.String.check(Schema.isPattern(pattern.success))
  if (typeof least === "number") string = string.check(Schema.isMinLength(Math.min(least, maxMatchLength)))
  if (typeof most === "number") string = string.check(Schema.isMaxLength(most))
  return yield* Arbitrary.sampleEffect(Arbitrary.schema(string), { count: 1, seed, size: 6 }).pipe(
    Effect.map(([sample]) => Option.fromUndefinedOr(sample)),
    // Neither a pattern that cannot be generated nor a length that does not go with it may fail the answer.
    Effect.catchCause(() => Effect.succeed(Option.none<string>()))
  )
})

interface Extent {
  /** Characters that it takes at least. */
  readonly length: number
  /** Whether it holds a part that may be repeated more or less often. */
  readonly open: boolean
}

const token = /\{\d+(?:,\d*)?\}|\(\?(?:[:=!]|<[=!]|<[^>]*>)|\\(?:u\{[^}]*\}|[pP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|./gsu

/** Whether the strings of a pattern are short and quickly matched. Takes alternatives for a sequence, to be safe. */
const isTame = (source: string): boolean => {
  if (source.length > maxPatternLength) return false
  const outer: Array<Extent> = []
  let group: Extent = { length: 0, open: false }
  let last: Extent = group
  for (const [part] of source.matchAll(token)) {
    if (part.startsWith("(")) {
      outer.push(group)
      group = { length: 0, open: false }
    } else if (part === ")") {
      last = group
      const around = outer.pop()
      if (around === undefined) return false
      group = { length: around.length + last.length, open: around.open || last.open }
    } else if (part === "*" || part === "+") {
      group = { length: group.length, open: true }
    } else if (/^\{./u.test(part)) {
      const least = Number(/\d+/u.exec(part)?.[0])
      if (last.open && least > maxAmbiguity) return false
      group = { length: group.length + last.length * Math.max(0, least - 1), open: group.open || part.includes(",") }
    } else if (!/^[?|^$]$/u.test(part)) {
      last = { length: 1, open: false }
      group = { length: group.length + 1, open: group.open }
    }
    if (group.length > maxMatchLength) return false
  }
  return true
}
