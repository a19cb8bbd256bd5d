/** The fates of a request's fields by its schema: known fields are carried, unknown ones are lost hints. */
import { type Schema, SchemaAST } from "effect"
import type { Fate } from "./Losses.ts"

export const fatesOf = (schema: Schema.Top): Fate => ofAst(SchemaAST.toEncoded(schema.ast))

const ofAst = (ast: SchemaAST.AST): Fate => {
  if (SchemaAST.isArrays(ast)) return ast.rest[0] === undefined ? "carried" : [ofAst(ast.rest[0])]
  if (SchemaAST.isUnion(ast)) return ast.types.map(ofAst).reduce(merge)
  if (!SchemaAST.isObjects(ast) || ast.indexSignatures.length > 0) return "carried"
  return Object.fromEntries(ast.propertySignatures.map(({ name, type }) => [name, ofAst(type)]))
}

/** The fates of a union: a text says nothing about the fields of an object. */
const merge = (one: Fate, other: Fate): Fate => {
  if (typeof one === "string") return other
  if (typeof other === "string") return one
  if (Array.isArray(one) || Array.isArray(other)) return Array.isArray(one) ? one : other
  return { ...one, ...other }
}
