/** Describes what a schema expects, in terms of JSON and with bounds: `a whole number from 1 to 10`, `"low", "medium" or "high"`. */
import { Predicate, SchemaAST, type SchemaRepresentation } from "effect"

/** What these types accept together. Leaves out `null`, which does not help a client that has sent a value. */
export const describeExpected = (types: ReadonlyArray<SchemaAST.AST>): string => {
  const members = types.flatMap((type) => SchemaAST.isUnion(type) ? membersOf(type) : [type])
  const notNull = members.filter((type) => !SchemaAST.isNull(type))
  return enumerate([...new Set((notNull.length === 0 ? members : notNull).map(nameOf))], "or")
}

/** The members of a union, nested ones included. */
export const membersOf = (union: SchemaAST.Union): ReadonlyArray<SchemaAST.AST> =>
  union.types.flatMap((type) => SchemaAST.isUnion(type) ? membersOf(type) : [type])

/** `a, b or c` */
export const enumerate = (names: ReadonlyArray<string>, word: "and" | "or"): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`

/** Whether there is a name for the values of this type. */
export const isNamed = (type: SchemaAST.AST): boolean => nameOf(type) !== unnamed

const unnamed = "something else"

const nameOf = (type: SchemaAST.AST): string => {
  const checks = checksOf(type.checks)
  const own = checks.flatMap((check) => textOfCheck(check) ?? []).at(0) ??
    (checks.length === 0 ? textAt(type.annotations, "expected") : undefined)
  if (own === "URL") return "an address such as https://example.com"
  // the name of a class, in upper case, means nothing to the reader
  if (own !== undefined && !(SchemaAST.isDeclaration(type) && /^[A-Z]/.test(own))) return own
  switch (type._tag) {
    case "Null":
      return "null"
    case "Literal":
      return JSON.stringify(type.literal)
    case "Boolean":
      return "true or false"
    case "String":
      return sized("string", "characters", boundsOf(checks, "string"))
    case "Number": {
      const bounds = boundsOf(checks, "number")
      return `a ${bounds.whole ? "whole number" : "number"}${extent(bounds)}`
    }
    case "Arrays":
      return sized("array", "items", boundsOf(checks, "array"))
    case "Objects":
      return "an object"
    default:
      return unnamed
  }
}

type Filter = SchemaAST.Filter<never>

const checksOf = (checks: SchemaAST.Checks | undefined): ReadonlyArray<Filter> =>
  (checks ?? []).flatMap((check) => check._tag === "Filter" ? [check] : checksOf(check.checks))

type Kind = "string" | "number" | "array"

/** The check in JSON Schema, as far as JSON Schema can express it. */
const fragmentOf = ({ annotations }: Filter, type: Kind): Readonly<Record<string, unknown>> | undefined => {
  const found = annotations?.toJsonSchema?.({ type, schemas: [] })
  return found === undefined || !isApproximate(found) ? found : found[0]
}

const isApproximate = (
  output: SchemaRepresentation.ToJsonSchema.CheckOutput
): output is Extract<typeof output, ReadonlyArray<unknown>> => Array.isArray(output)

/** The check's own text, unless the check is a bound. */
const textOfCheck = (check: Filter): string | undefined => {
  const fragment = fragmentOf(check, "string") ?? {}
  const isBound = Object.keys(fragment).some((key) => key === "type" || /^(exclusive)?m(in|ax)/i.test(key))
  return isBound ? undefined : textAt(check.annotations, "expected")
}

interface Bounds {
  readonly whole: boolean
  readonly least: number | undefined
  readonly above: number | undefined
  readonly most: number | undefined
}

const boundsOf = (checks: ReadonlyArray<Filter>, kind: Kind): Bounds => {
  const fragments = checks.map((check) => fragmentOf(check, kind) ?? {})
  const values = (...names: ReadonlyArray<string>): ReadonlyArray<number> =>
    fragments.flatMap((fragment) => names.map((name) => fragment[name])).filter(Predicate.isNumber)
      .filter((bound) => Math.abs(bound) !== Number.MAX_SAFE_INTEGER)
  const greatest = (bounds: ReadonlyArray<number>) => bounds.length === 0 ? undefined : Math.max(...bounds)
  const most = values("maximum", "maxLength", "maxItems")
  return {
    whole: fragments.some(({ type }) => type === "integer"),
    least: greatest(values("minimum", "minLength", "minItems")),
    above: greatest(values("exclusiveMinimum")),
    most: most.length === 0 ? undefined : Math.min(...most)
  }
}

/** ` from 1 to 10`, or only one of the bounds. */
const extent = ({ above, least, most }: Bounds): string => {
  const from = above === undefined
    ? least === undefined ? undefined : ` of at least ${least}`
    : ` greater than ${above}`
  if (most === undefined) return from ?? ""
  if (from === undefined) return ` of at most ${most}`
  return above === undefined ? ` from ${least} to ${most}` : `${from} and at most ${most}`
}

const sized = (name: string, unit: string, { least = 0, most }: Bounds): string => {
  const article = /^[aeiou]/.test(name) ? "an" : "a"
  if (most !== undefined) return `${article} ${name} of ${least > 0 ? `${least} to` : "at most"} ${most} ${unit}`
  if (least > 1) return `${article} ${name} of at least ${least} ${unit}`
  return least === 1 ? `a non-empty ${name}` : `${article} ${name}`
}

/** The text of an annotation; `undefined` if there is none. */
export const textAt = (annotations: object | undefined, name: string): string | undefined => {
  const text = Predicate.hasProperty(annotations, name) ? annotations[name] : undefined
  return typeof text === "string" ? text : undefined
}
