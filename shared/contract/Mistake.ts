/**
 * Says in plain words what is wrong with a value that its schema does not accept: where, and what belongs there. The one
 * voice of requests, the catalogue, the environment and the command line.
 *
 * Never what was sent, so that nothing of a prompt or a secret comes into a message.
 */
import { Predicate, SchemaAST, type SchemaIssue } from "effect"
import { isNamed, listed, membersOf, textAt, wanted } from "./Wanted.ts"

export interface Mistake {
  /** Empty for the value itself. */
  readonly path: ReadonlyArray<PropertyKey>
  /** What is said of it, as in `must be a string`. */
  readonly message: string
}

/** All that is wrong with a value; no more than the first mistake where its decoder stops there. */
export const all = (issue: SchemaIssue.Issue, value: unknown): ReadonlyArray<Mistake> => mistakesIn(issue, [], value)

/** The first of them. */
export const first = (issue: SchemaIssue.Issue, value: unknown): Mistake =>
  all(issue, value)[0] ?? { path: [], message: "is not valid" }

/** `messages[0].content`; empty for the value itself. */
export const place = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? String(key) : `${text}.${String(key)}`
  }, "")

/** A mistake as a line of text, given what the value as a whole is called. */
export const line = ({ message, path }: Mistake, whole: string): string =>
  path.length === 0 ? `${whole} ${message}` : `${place(path)}: ${message}`

const required = "is required"

type Path = ReadonlyArray<PropertyKey>

const mistakesIn = (issue: SchemaIssue.Issue, path: Path, value: unknown): ReadonlyArray<Mistake> => {
  switch (issue._tag) {
    case "Pointer":
      // a list that must hold something lacks its first item
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
      // what a text stands for is what is wanted, not the text
      return isWhole(issue.issue) && isNamed(issue.ast)
        ? [{ path, message: mustBe([issue.ast]) }]
        : mistakesIn(issue.issue, path, value)
    case "AnyOf": {
      const untagged = tagMistake(issue.ast, path, value)
      if (untagged !== undefined) return [untagged]
      return issue.issues.every(isWhole)
        ? [{ path, message: mustBe(membersOf(issue.ast)) }]
        : issue.issues.flatMap((inner) => mistakesIn(inner, path, value))
    }
    case "MissingKey":
      return [{ path, message: required }]
    case "UnexpectedKey":
      return [{ path, message: `is unknown here${alternatives(issue.ast)}` }]
    case "InvalidType":
      return [{ path, message: mustBe([issue.ast]) }]
    case "InvalidValue":
      return [{ path, message: saidOf(issue) ?? "is not valid" }]
    default:
      return [{ path, message: "is not valid" }]
  }
}

/** Whether it is about a value as a whole, not about something in it, and has no words of its own. */
const isWhole = (issue: SchemaIssue.Issue): boolean => {
  switch (issue._tag) {
    case "Filter":
      return isLeaf(issue.issue) && ownWords(issue) === undefined
    case "Composite":
    case "AnyOf":
      return issue.issues.every(isWhole)
    default:
      return isLeaf(issue)
  }
}

const isLeaf = ({ _tag }: SchemaIssue.Issue): boolean => _tag === "InvalidValue" || _tag === "InvalidType"

/** A check has its own words, or is told with the whole of what is wanted. */
const mistakesOf = (
  failed: SchemaIssue.Filter,
  ast: SchemaAST.AST | undefined,
  path: Path
): ReadonlyArray<Mistake> => {
  if (!isLeaf(failed.issue)) return mistakesIn(failed.issue, path, undefined)
  return [{ path, message: ownWords(failed) ?? (ast === undefined ? "is not valid" : mustBe([ast])) }]
}

const ownWords = ({ filter, issue }: SchemaIssue.Filter): string | undefined =>
  textAt(filter.annotations, "message") ?? ("annotations" in issue ? textAt(issue.annotations, "message") : undefined)

const saidOf = (issue: SchemaIssue.Issue): string | undefined => {
  if (!("annotations" in issue)) return undefined
  const expected = textAt(issue.annotations, "expected")
  return textAt(issue.annotations, "message") ?? (expected === undefined ? undefined : `must be ${expected}`)
}

/** The fields that an object may have. */
const alternatives = (ast: SchemaAST.AST): string =>
  SchemaAST.isObjects(ast) && ast.propertySignatures.length > 0
    ? `: there ${ast.propertySignatures.length === 1 ? "is" : "are"} ${
      listed(ast.propertySignatures.map(({ name }) => String(name)), "and")
    }`
    : ""

/** An object that no member of a tagged union fits is wrong in its tag. */
const tagMistake = (union: SchemaAST.Union, path: Path, value: unknown): Mistake | undefined => {
  const there = path.reduce<unknown>((inner, key) => Predicate.hasProperty(inner, key) ? inner[key] : undefined, value)
  if (!Predicate.isReadonlyObject(there)) return undefined
  const members = membersOf(union).filter(SchemaAST.isObjects).map(tagsOf)
  const tag = members.flatMap((tags) => [...tags.keys()]).find((name) => members.every((tags) => tags.has(name)))
  if (tag === undefined) return undefined
  if (!Object.hasOwn(there, tag)) return { path: [...path, tag], message: required }
  const literals = members.flatMap((tags) => tags.get(tag) ?? [])
  return literals.some(({ literal }) => literal === there[tag])
    ? undefined
    : { path: [...path, tag], message: mustBe(literals) }
}

/** The fields that an object must have and that can hold but a few values, and which. */
const tagsOf = (object: SchemaAST.Objects): ReadonlyMap<PropertyKey, ReadonlyArray<SchemaAST.Literal>> =>
  new Map(object.propertySignatures.flatMap(({ name, type }) => {
    const values = SchemaAST.isUnion(type) ? membersOf(type) : [type]
    return values.every(SchemaAST.isLiteral) && !SchemaAST.isOptional(type) ? [[name, values]] : []
  }))

const mustBe = (types: ReadonlyArray<SchemaAST.AST>): string => `must be ${wanted(types)}`
