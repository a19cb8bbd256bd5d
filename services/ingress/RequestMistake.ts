/**
 * Says what is wrong with a request that its schema does not accept: where the first mistake is, and what belongs there.
 *
 * Never what the client sent, so that nothing of a prompt comes into a message.
 */
import { Predicate, SchemaAST, SchemaIssue } from "effect"

export interface Mistake {
  /** Empty for the request itself. */
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const required = "is required"

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => issue._tag === "MissingKey" ? required : SchemaIssue.defaultLeafHook(issue)
})

/** The first mistake in a value that was refused with this issue. */
export const first = (issue: SchemaIssue.Issue, value: unknown): Mistake => {
  const unmatched = findUnmatched(issue, [])
  if (unmatched !== undefined) return describe(unmatched, value)
  const [found] = format(issue).issues
  const path = found?.path?.map((segment) => typeof segment === "object" ? segment.key : segment) ?? []
  return { path, message: found?.message ?? "is not valid" }
}

/** A union that had no member to try the value on. */
interface Unmatched {
  readonly path: ReadonlyArray<PropertyKey>
  readonly union: SchemaAST.Union
}

const findUnmatched = (issue: SchemaIssue.Issue, path: ReadonlyArray<PropertyKey>): Unmatched | undefined => {
  switch (issue._tag) {
    case "Pointer":
      return findUnmatched(issue.issue, [...path, ...issue.path])
    case "Composite":
    case "AnyOf": {
      const [inner] = issue.issues
      if (inner !== undefined) return findUnmatched(inner, path)
      return issue._tag === "AnyOf" ? { path, union: issue.ast } : undefined
    }
    default:
      return undefined
  }
}

/** An object that no member of a tagged union fits is wrong in its tag; anything else is wrong itself. */
const describe = ({ path, union }: Unmatched, value: unknown): Mistake => {
  const members = membersOf(union)
  const there = path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown>)[key], value)
  if (Predicate.isReadonlyObject(there)) {
    const objects = members.filter(SchemaAST.isObjects)
    const tag = objects.flatMap((member) => [...tagsOf(member).keys()])
      .find((name) => objects.every((member) => tagsOf(member).has(name)))
    if (tag !== undefined) {
      const message = Object.hasOwn(there, tag)
        ? expected(objects.map((member) => JSON.stringify(tagsOf(member).get(tag))))
        : required
      return { path: [...path, tag], message }
    }
  }
  return { path, message: expected(members.map(nameOf)) }
}

/** The members of a union and of the unions in it. */
const membersOf = (union: SchemaAST.Union): ReadonlyArray<SchemaAST.AST> =>
  union.types.flatMap((type) => SchemaAST.isUnion(type) ? membersOf(type) : [type])

/** The fields of an object that can hold but one value. */
const tagsOf = (object: SchemaAST.Objects): ReadonlyMap<PropertyKey, SchemaAST.LiteralValue> =>
  new Map(
    object.propertySignatures.flatMap(({ name, type }) => SchemaAST.isLiteral(type) ? [[name, type.literal]] : [])
  )

/** A kind of value in JSON's words. */
const nameOf = (type: SchemaAST.AST): string => {
  switch (type._tag) {
    case "Literal":
      return JSON.stringify(type.literal)
    case "Objects":
      return "object"
    case "Arrays":
      return "array"
    default:
      return type._tag.toLowerCase()
  }
}

const expected = (names: ReadonlyArray<string>): string => `Expected ${[...new Set(names)].join(" | ")}`
