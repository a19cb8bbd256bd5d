/** Edits of JSON text find every member and change nothing else. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { JsonOutline } from "../../../../shared/provider/json/JsonOutline.ts"
import { members, setMembers, valueOf } from "../../../../shared/provider/json/JsonText.ts"
import { cut } from "../../../fixture/general/Cut.ts"

type Tree = string | number | boolean | null | ReadonlyArray<Tree> | ObjectTree
/** Members in a list, so that a name can occur twice. */
interface ObjectTree {
  readonly members: ReadonlyArray<readonly [name: string, value: Tree]>
}

const names = ["model", "model", "stream", "usage", "", "__proto__", "constructor", "0", "a\"b", "é", "\ufeffmodel"]
// Without backslashes, because JSON.parse is the reference here and V8 13.6 reads {"\u0000":1} as {"\\":1} just after it has
// read the latter.
const Name = Schema.Union([Schema.Literals(names), Schema.String.check(Schema.isPattern(/^[^\\]*$/))])
const Tree: Schema.Codec<Tree> = Schema.Union([
  Schema.String,
  Schema.Literals(["{", "}\"", "\\\"", "[,]", "漢字 🙂", "\ud83d"]),
  Schema.Finite,
  Schema.Boolean,
  Schema.Null,
  Schema.Array(Schema.suspend(() => Tree)),
  Schema.suspend(() => ObjectTree)
])
const ObjectTree: Schema.Codec<ObjectTree> = Schema.Struct({ members: Schema.Array(Schema.Tuple([Name, Tree])) })

/** Random choices of notation: white space, escapes, form of numbers. */
type Noise = () => number
const noise = (numbers: ReadonlyArray<number>): Noise => {
  let at = 0
  return () => numbers[at++ % numbers.length] ?? 0
}

const spaces = ["", "", " ", "\n  ", "\t", "\r\n"]
const space = (noise: Noise): string => spaces[noise() % spaces.length]!

const printString = (value: string, noise: Noise): string => {
  switch (noise() % 3) {
    case 0:
      return JSON.stringify(value)
    case 1:
      return JSON.stringify(value).replaceAll("/", "\\/")
    default:
      return `"${value.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`
  }
}

const print = (tree: Tree, noise: Noise): string => {
  if (typeof tree === "string") return printString(tree, noise)
  if (typeof tree === "number") return noise() % 2 === 0 ? JSON.stringify(tree) : tree.toExponential().toUpperCase()
  if (typeof tree !== "object" || tree === null) return JSON.stringify(tree)
  if ("members" in tree) return join(pieces(tree, noise))
  return `[${space(noise)}${tree.map((item) => print(item, noise)).join(`${space(noise)},`)}${space(noise)}]`
}

interface Piece {
  readonly name: string
  /** The text between the previous value and this one. */
  readonly before: string
  readonly value: string
  readonly after: string
}
const pieces = (tree: ObjectTree, noise: Noise): ReadonlyArray<Piece> =>
  tree.members.map(([name, value]) => ({
    name,
    before: `${space(noise)}${printString(name, noise)}${space(noise)}:${space(noise)}`,
    value: print(value, noise),
    after: space(noise)
  }))
const join = (pieces: ReadonlyArray<Piece>): string =>
  `{${pieces.map(({ after, before, value }) => `${before}${value}${after}`).join(",")}}`

/** An object as text, and the pieces of the text. */
const documents = Arbitrary.all([
  Arbitrary.schema(ObjectTree),
  Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000 }))), {
    minLength: 1,
    maxLength: 50
  })
]).pipe(Arbitrary.map(([tree, numbers]) => {
  const next = noise(numbers)
  const around = [space(next), space(next)] as const
  const all = pieces(tree, next)
  return { pieces: all, around, text: `${around[0]}${join(all)}${around[1]}` }
}))

const options = { arbitrary: { runs: 500 } }
const utf8 = (text: string): Uint8Array => Buffer.from(text)
const read = (text: string) => {
  const bytes = utf8(text)
  const found = members(bytes)
  assert.isDefined(found)
  return { bytes, found }
}

describe("members", () => {
  it.prop("are all found in order, each with the bytes of its value", [documents], ([{ pieces, text }]) => {
    const { bytes, found } = read(text)
    assert.deepStrictEqual(
      found.map(({ name, valueEnd, valueStart }) => [name, Buffer.from(bytes).toString("utf8", valueStart, valueEnd)]),
      pieces.map(({ name, value }) => [name, value])
    )
    for (const { start, valueStart } of found) {
      assert.match(Buffer.from(bytes).toString("utf8", start, valueStart), /^"[^]*"\s*:\s*$/)
    }
  }, options)

  it.prop("have the values that JSON.parse reads, the last of a duplicate name", [documents], ([
    { text }
  ]) => {
    const { bytes, found } = read(text)
    const parsed: Record<string, unknown> = JSON.parse(text)
    assert.deepStrictEqual(new Set(found.map(({ name }) => name)), new Set(Object.keys(parsed)))
    for (const { name } of found) assert.deepStrictEqual(valueOf(bytes, found, name), parsed[name])
  }, options)

  it("have names without escapes", () => {
    const { found } = read(`{"\\\\":1,"\\u0000":2,"\\"\\u00e9\\n":3,"\\\\\\"":4}`)
    assert.deepStrictEqual(found.map(({ name }) => name), ["\\", "\0", "\"é\n", "\\\""])
  })

  it("have no value for an unknown name", () => {
    const { bytes, found } = read(`{"a":1}`)
    assert.isUndefined(valueOf(bytes, found, "b"))
    assert.isUndefined(valueOf(bytes, found, "toString"))
  })
})

describe("setMembers", () => {
  const changes = Arbitrary.all([
    documents,
    Arbitrary.schema(Name),
    Arbitrary.schema(Schema.Union([Schema.String, Schema.Finite, Schema.Record(Name, Schema.Boolean)]))
  ])

  it.prop(
    "changes every member of a name and no other byte",
    [changes],
    ([[{ around, pieces, text }, name, value]]) => {
      const { bytes, found } = read(text)
      const changed = setMembers(bytes, found, new Map([[name, value]]))
      const there = pieces.some((piece) => piece.name === name)
      const expected = join(
        pieces.map((piece) => piece.name === name ? { ...piece, value: JSON.stringify(value) } : piece)
      )
      const added = `{${JSON.stringify(name)}:${JSON.stringify(value)}${pieces.length > 0 ? "," : ""}`
      assert.strictEqual(
        Buffer.from(changed).toString(),
        `${around[0]}${there ? expected : added + join(pieces).slice(1)}${around[1]}`
      )
      const { found: again } = read(Buffer.from(changed).toString())
      assert.deepStrictEqual(valueOf(changed, again, name), JSON.parse(JSON.stringify(value)))
    },
    options
  )

  it.prop("leaves the text unchanged if there is nothing to change", [documents], ([{ text }]) => {
    const { bytes, found } = read(text)
    assert.strictEqual(Buffer.from(setMembers(bytes, found, new Map())).toString(), text)
  })

  it("changes several members at once and adds missing ones in front", () => {
    const { bytes, found } = read(`{ "model" : "a" , "n":1.0, "model":"b" }`)
    const changed = setMembers(bytes, found, new Map<string, unknown>([["model", "c"], ["x", [1]], ["y", null]]))
    assert.strictEqual(Buffer.from(changed).toString(), `{"x":[1],"y":null, "model" : "c" , "n":1.0, "model":"c" }`)
  })
})

const outline = (text: string, sizes: ReadonlyArray<number> = [text.length || 1]) => {
  const outline = new JsonOutline()
  for (const piece of cut(Buffer.from(text), sizes)) outline.push(piece)
  return outline.fields
}

describe("an outline", () => {
  const sizes = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 }))), {
    minLength: 1,
    maxLength: 5
  })

  it.prop("equals what JSON.parse reads, in pieces of any size", [documents, sizes], ([{ text }, sizes]) => {
    assert.deepStrictEqual(outline(text, sizes), JSON.parse(text))
  }, options)

  const sizesOfPieces = [7, 1_000, 16_384, 100_000, 1_000_000]
  const long = "\\\"],[{,é".repeat(9_000)

  it("keeps small values within large ones at any depth, and the beginnings of long strings", () => {
    const part = { kind: "x", data: long, note: [1, { a: null }] }
    const value = {
      a: 1,
      list: [long, [long, 2], { long, b: [true] }],
      [`"${long.slice(0, 100)}`]: { inner: { long, last: "é" }, usage: { tokens: 3 } },
      empty: { list: [], object: {} },
      answers: [{ content: { parts: [part] }, reason: "STOP" }],
      end: [3]
    }
    const text = JSON.stringify(value, null, 1)
    const beginning = (JSON.parse(text, (_, item) => item === long ? "long" : item)) as typeof value
    for (const size of sizesOfPieces) {
      const read = outline(text, [size]) ?? {}
      let strings = 0
      const marked: unknown = JSON.parse(JSON.stringify(read), (_, item) => {
        if (typeof item !== "string" || item.length < 100) return item
        assert.isTrue(item.length > 400 && item.length < long.length && long.startsWith(item), item.slice(-20))
        strings++
        return "long"
      })
      assert.strictEqual(strings, 5)
      assert.deepStrictEqual(marked, beginning)
    }
  })

  it("keeps the first members of a large object", () => {
    const members = Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`member ${index}`, index]))
    const first = Object.fromEntries(Object.entries(members).slice(0, 256))
    assert.deepStrictEqual(outline(JSON.stringify({ a: members, b: 1 })), { a: first, b: 1 })
  })

  it("keeps the first items of a large list, and its length", () => {
    const vectors = Array.from({ length: 20 }, (_, index) => Array.from({ length: 4_000 }, (_, at) => index + at / 8))
    const text = JSON.stringify({ vectors, words: [...Array(3_000).fill("[word,]"), { a: 1 }], last: 1 })
    for (const size of sizesOfPieces) {
      const read = outline(text, [size]) ?? {}
      const lists = read["vectors"] as typeof vectors
      assert.lengthOf(lists, 20)
      assert.lengthOf(Object.keys(lists), 16)
      for (const [index, list] of lists.slice(0, 16).entries()) {
        assert.lengthOf(list, 4_000)
        assert.deepStrictEqual(Object.values(list), vectors[index]?.slice(0, 16))
      }
      const words = read["words"] as ReadonlyArray<string>
      assert.deepStrictEqual([words.length, Object.values(words)], [3_001, Array(16).fill("[word,]")])
      assert.strictEqual(read["last"], 1)
    }
  })

  it("keeps only the type of what is nested very deeply, and no other large value but its name", () => {
    const nested = (depth: number): unknown => depth === 0 ? { long, list: [1] } : { in: nested(depth - 1) }
    const within = (value: unknown): unknown => value === undefined ? 0 : value
    let read: unknown = outline(JSON.stringify(nested(20)))
    let depth = 0
    for (; Object.keys(within(read) as object).length > 0; depth++) read = (read as { readonly in: unknown }).in
    assert.deepStrictEqual([depth, read], [8, {}])
    assert.deepStrictEqual(outline(`{"a":${" ".repeat(20_000)}1,"b":${"1".repeat(20_000)}}`), {
      a: undefined,
      b: undefined
    })
  })

  it("is rejected if a large value is invalid or does not end", () => {
    const text = JSON.stringify({ a: { list: [long], b: 1 } })
    assert.isDefined(outline(text))
    assert.isUndefined(outline(text.replace("\"b\":1", "\"b\":x")))
    assert.isUndefined(outline(text.replace("\"b\":1", "\"b\"")))
    assert.isUndefined(outline(text.replace("\"b\":1", "")))
    assert.isUndefined(outline(text.slice(0, -1)))
    assert.isUndefined(outline(`${text}x`))
  })
})

describe("an incomplete or invalid object", () => {
  it.prop("is rejected, wherever it ends or continues", [documents], ([{ around, text }]) => {
    const bytes = Buffer.from(text)
    const end = bytes.length - utf8(around[1]).length
    for (let length = 0; length < end; length++) assert.isUndefined(members(bytes.subarray(0, length)))
    assert.isDefined(members(bytes.subarray(0, end)))
    for (const more of ["x", "}", ",", "{}", "\0"]) {
      assert.isUndefined(members(utf8(text + more)))
      assert.isUndefined(outline(text + more))
    }
    assert.isUndefined(outline(bytes.subarray(0, end - 1).toString()))
  }, { arbitrary: { runs: 100 } })

  it.each([
    ...["", " ", "[]", "null", "1", "\"text\"", "{", "}", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\" 1}"],
    ...["{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}", "{1:1}", "{\"a\":\"}", "{\"\\x\":1}", "{\"a\":[}", "{\"a\":1]}"]
  ])("is rejected: %s", (text) => {
    assert.isUndefined(members(utf8(text)))
    assert.isUndefined(outline(text))
  })
})
