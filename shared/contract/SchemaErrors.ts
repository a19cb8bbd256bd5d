/**
 * Makes error texts for values that their schema rejects: the path, and what the schema expects there. Used for requests, the
 * catalogue, the environment and the command line.
 *
 * A text never contains the value itself, which may hold a prompt or a secret.
 */
import { Predicate, SchemaAST, type SchemaIssue } from "effect"
import { describeExpected, enumerate, isNamed, membersOf, textAt } from "./Expectation.ts"
import { InvalidRequest } from "./JobError.ts"

export interface SchemaError {
  /** Empty for the value itself. */
  readonly path: Path
  /** As in `must be a string`. */
  readonly message: string
}

/** All errors of a value, or only the first if its decoder stops there. */
export const all = (issue: SchemaIssue.Issue, value: unknown): ReadonlyArray<SchemaError> =>
  mistakesIn(issue, [], value)

export const first = (issue: SchemaIssue.Issue, value: unknown): SchemaError =>
  all(issue, value)[0] ?? { path: [], message: invalid }

/** `messages[0].content`; empty for the value itself. */
export const formatPath = (path: Path): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? String(key) : `${text}.${String(key)}`
  }, "")

/** An error as a line of text; `whole` names the value itself. */
export const formatError = ({ message, path }: SchemaError, whole: string): string =>
  path.length === 0 ? `${whole} ${message}` : `${formatPath(path)}: ${message}`

/** The first error of a request's body. */
export const toInvalidRequest = (issue: SchemaIssue.Issue, body: unknown): InvalidRequest => {
  const mistake = first(issue, body)
  return new InvalidRequest({
    message: formatError(mistake, "The request body"),
    param: formatPath(mistake.path) || null,
    code: "invalid_value"
  })
}

const required = "is required"
const invalid = "is not valid"

type Path = ReadonlyArray<PropertyKey>

const mistakesIn = (issue: SchemaIssue.Issue, path: Path, value: unknown): ReadonlyArray<SchemaError> => {
  switch (issue._tag) {
    case "Pointer":
      // a missing first item means that an array which must not be empty is
      if (issue.issue._tag === "MissingKey" && typeof issue.path.at(-1) === "number") {
        return [{ path: [...path, ...issue.path.slice(0, -1)], message: "must not be empty" }]
      }
      return mistakesIn(issue.issue, [...path, ...issue.path], value)
    case "Composite":
      return issue.issues.flatMap((inner) =>
        inner._tag === "Filter" ? mistakesOf(inner, issue.ast, path) : mistakesIn(inner, path, value)
      )
    case "Filter":
      return mistakesOf(issue, undefined, path)
    case "Encoding":
      // for a value encoded as a string, the text names the encoded type
      return isWhole(issue.issue) && isNamed(issue.ast)
        ? [{ path, message: mustBe([issue.ast]) }]
        : mistakesIn(issue.issue, path, value)
    case "AnyOf": {
      const untagged = tagMistake(issue.ast, path, value)
      if (untagged !== undefined) return [untagged]
      if (issue.issues.every(isWhole)) return [{ path, message: mustBe(membersOf(issue.ast)) }]
      return issue.issues.filter((inner) => !isRuledOut(inner)).flatMap((inner) => mistakesIn(inner, path, value))
    }
    case "MissingKey":
      return [{ path, message: required }]
    case "UnexpectedKey":
      return [{ path, message: `is unknown${knownFields(issue.ast)}` }]
    case "InvalidType":
      return [{ path, message: mustBe([issue.ast]) }]
    case "InvalidValue":
      return [{ path, message: annotated(issue) ?? invalid }]
    default:
      return [{ path, message: invalid }]
  }
}

/** Whether a union inside a union has no member with the value's tag. */
const isRuledOut = (issue: SchemaIssue.Issue): boolean => issue._tag === "AnyOf" && issue.issues.length === 0

/** Whether the issue concerns the value as a whole, not a field of it, and has no message of its own. */
const isWhole = (issue: SchemaIssue.Issue): boolean => {
  switch (issue._tag) {
    case "Filter":
      return isLeaf(issue.issue) && ownMessage(issue) === undefined
    case "Composite":
    case "AnyOf":
      return issue.issues.every(isWhole)
    default:
      return isLeaf(issue)
  }
}

const isLeaf = ({ _tag }: SchemaIssue.Issue): boolean => _tag === "InvalidValue" || _tag === "InvalidType"

/** The errors of a failed check: its own message, or else everything that the schema expects. */
const mistakesOf = (
  failed: SchemaIssue.Filter,
  ast: SchemaAST.AST | undefined,
  path: Path
): ReadonlyArray<SchemaError> => {
  if (!isLeaf(failed.issue)) return mistakesIn(failed.issue, path, undefined)
  return [{ path, message: ownMessage(failed) ?? (ast === undefined ? invalid : mustBe([ast])) }]
}

const ownMessage = ({ filter, issue }: SchemaIssue.Filter): string | undefined =>
  textAt(filter.annotations, "message") ?? ("annotations" in issue ? textAt(issue.annotations, "message") : undefined)

const annotated = ({ annotations }: SchemaIssue.InvalidValue): string | undefined => {
  const expected = textAt(annotations, "expected")
  return textAt(annotations, "message") ?? (expected === undefined ? undefined : `must be ${expected}`)
}

const knownFields = (ast: SchemaAST.AST): string => {
  const names = SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []
  if (names.length === 0) return ""
  return names.length === 1
    ? `: the only known field is ${names[0]}`
    : `: the known fields are ${enumerate(names, "and")}`
}

/** The error of an object whose tag no member of a union has. */
const tagMistake = (union: SchemaAST.Union, path: Path, value: unknown): SchemaError | undefined => {
  const object = path.reduce<unknown>((inner, key) => Predicate.hasProperty(inner, key) ? inner[key] : undefined, value)
  if (!Predicate.isReadonlyObject(object)) return undefined
  const members = membersOf(union).filter(SchemaAST.isObjects).map(tagsOf)
  const tag = members.flatMap((tags) => [...tags.keys()]).find((name) => members.every((tags) => tags.has(name)))
  if (tag === undefined) return undefined
  if (!Object.hasOwn(object, tag)) return { path: [...path, tag], message: required }
  const literals = members.flatMap((tags) => tags.get(tag) ?? [])
  return literals.some(({ literal }) => literal === object[tag])
    ? undefined
    : { path: [...path, tag], message: mustBe(literals) }
}

/** The required fields of an object whose values are literals, with those literals. */
const tagsOf = (object: SchemaAST.Objects): ReadonlyMap<PropertyKey, ReadonlyArray<SchemaAST.Literal>> =>
  new Map(object.propertySignatures.flatMap(({ name, type }) => {
    const values = SchemaAST.isUnion(type) ? membersOf(type) : [type]
    return values.every(SchemaAST.isLiteral) && !SchemaAST.isOptional(type) ? [[name, values]] : []
  }))

const mustBe = (types: ReadonlyArray<SchemaAST.AST>): string => `must be ${describeExpected(types)}`
