/** Reads YAML with the line of each value, for error messages. */
import { Result } from "effect"
import { type Document, isAlias, isMap, isNode, isSeq, LineCounter, parseDocument } from "yaml"

export interface YamlText {
  readonly value: unknown
  /** The line of a value, from 1. If the path does not exist, the line of its longest existing part. */
  readonly lineOf: (path: ReadonlyArray<PropertyKey>) => number
}

/** Reads a text. Fails with its mistakes if it is not valid YAML. */
export const read = (
  text: string
): Result.Result<YamlText, ReadonlyArray<{ readonly line: number; readonly message: string }>> => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false })
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line)
  if (document.errors.length > 0) {
    return Result.fail(document.errors.map(({ code, message, pos: [at] }) => ({
      line: lineAt(at),
      message: code === "DUPLICATE_KEY" ? `the key ${keyAt(text, at)} occurs twice: rename or remove one` : message
    })))
  }
  return Result.try({
    try: (): YamlText => ({ value: document.toJS(), lineOf: (path) => lineAt(offsetOf(document, path)) }),
    // too many aliases
    catch: (cause) => [{ line: 1, message: cause instanceof Error ? cause.message : "cannot be read" }]
  })
}

/** The key of a map at this offset, as it is written. */
const keyAt = (text: string, offset: number): string =>
  /^(?:"[^"\n]*"|'[^'\n]*'|[^\s:]*)/.exec(text.slice(offset))?.[0] ?? ""

/** The offset of the innermost existing value on the path: in an object of its key, in a list of the item. */
const offsetOf = (document: Document, path: ReadonlyArray<PropertyKey>): number => {
  let node: unknown = document.contents
  let offset = isNode(node) ? node.range?.[0] ?? 0 : 0
  for (const key of path) {
    if (isAlias(node)) node = node.resolve(document)
    let found: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key: name }) => String(isNode(name) ? name.toJS(document) : name) === String(key))
      if (pair === undefined) return offset
      found = pair.key
      node = pair.value
    } else if (isSeq(node)) {
      found = node.items[Number(key)]
      node = found
    }
    if (!isNode(found)) return offset
    offset = found.range?.[0] ?? offset
  }
  return offset
}
