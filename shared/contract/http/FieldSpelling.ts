/**
 * Reads the fields of Google's JSON in both spellings: camelCase, as in Google's reference, and snake_case, as in many of its examples.
 * Only names that the schema knows have two spellings; names that the client or the model made up stay unchanged.
 */
import { Effect, Predicate, Schema, SchemaAST, SchemaGetter, SchemaIssue, String } from "effect"

/** Both spellings of a field, camelCase first. */
export const spellingsOf = (name: string): ReadonlyArray<string> => [name, String.camelToSnake(name)]

/** Decodes fields in either spelling to camelCase. Fails with the path of a field that is present in both, as Google does. */
export const inEitherSpelling = <Type>(schema: Schema.Codec<Type, unknown>): Schema.Codec<Type, unknown> => {
  const respell = respellerOf(SchemaAST.toEncoded(schema.ast)) ?? asItIs
  const decode = SchemaGetter.transformEffect((sent: unknown) => {
    const walk: Walk = { path: [], repeated: undefined }
    const respelled = respell(sent, walk)
    return walk.repeated === undefined ? Effect.succeed(respelled) : Effect.fail(repeats(walk.repeated))
  })
  return Schema.Unknown.pipe(Schema.decodeTo(schema, { decode, encode: SchemaGetter.passthrough() }))
}

type Path = ReadonlyArray<PropertyKey>

/** The path of the value that is being read, and of the first field that is present in both spellings. */
interface Walk {
  readonly path: Array<PropertyKey>
  repeated: Path | undefined
}

type Respell = (value: unknown, walk: Walk) => unknown

const asItIs: Respell = (value) => value

const repeats = (path: Path) =>
  new SchemaIssue.Pointer(path, new SchemaIssue.InvalidValue({ message: "must not be there in both spellings" }))

/** The function that respells values of this type; `undefined` if the type has no known fields. */
const respellerOf = (ast: SchemaAST.AST): Respell | undefined => {
  if (SchemaAST.isUnion(ast)) return ast.types.map(respellerOf).find(Predicate.isNotUndefined)
  if (SchemaAST.isArrays(ast)) {
    const respell = ast.rest[0] === undefined ? undefined : respellerOf(ast.rest[0])
    if (respell === undefined) return undefined
    return (value, walk) =>
      Array.isArray(value) ? value.map((each: unknown, index) => within(respell, each, index, walk)) : value
  }
  if (!SchemaAST.isObjects(ast) || ast.indexSignatures.length > 0) return undefined
  const known = new Map(ast.propertySignatures.flatMap(({ name, type }) => {
    const field = { name: globalThis.String(name), respell: respellerOf(type) ?? asItIs }
    return spellingsOf(field.name).map((spelling) => [spelling, field] as const)
  }))
  return (value, walk) => {
    if (!Predicate.isReadonlyObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([sent, inner]) => {
        const { name, respell } = known.get(sent) ?? { name: sent, respell: asItIs }
        if (name !== sent && Object.hasOwn(value, name)) walk.repeated ??= [...walk.path, sent]
        return [name, within(respell, inner, sent, walk)]
      })
    )
  }
}

const within = (respell: Respell, value: unknown, key: PropertyKey, walk: Walk): unknown => {
  walk.path.push(key)
  const respelled = respell(value, walk)
  walk.path.pop()
  return respelled
}
