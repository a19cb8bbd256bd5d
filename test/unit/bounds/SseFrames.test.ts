/** Server-sent events are complete and unchanged, however their bytes were split. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { vi } from "vitest"
import { dataOf, replaceData, SseFrames } from "../../../shared/bounds/SseFrames.ts"
import { cut } from "../../fixture/general/Cut.ts"

const Text = Schema.Union([
  Schema.String,
  Schema.Literals(["", "[DONE]", "{\"a\":1}", ": ", "data:", "漢字 🙂", " x", "\ufeffx"])
])
const anyLine = Arbitrary.schema(Schema.Struct({
  field: Schema.Literals(["data: ", "data: ", "data:", ":", "event: ", "id: ", "retry: "]),
  text: Text
})).pipe(Arbitrary.map(({ field, text }) => ({ field, text: text.toWellFormed().replaceAll(/[\r\n]/g, "") })))

/** A frame as sent, and its data. */
const anyFrame = Arbitrary.all([
  Arbitrary.array(anyLine, { maxLength: 4 }),
  Arbitrary.schema(Schema.Literals(["\n", "\r\n"]))
]).pipe(Arbitrary.map(([lines, end]) => {
  const data = lines.flatMap(({ field, text }) =>
    field === "data:" ? [text.replace(/^ /, "")] : field === "data: " ? [text] : []
  )
  return {
    text: `${lines.map(({ field, text }) => `${field}${text}${end}`).join("")}${end}`,
    data: data.join("\n") === "" ? undefined : data.join("\n")
  }
}))

const toText = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

const sizes = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 }))), {
  maxLength: 8
})
const frames = Arbitrary.array(anyFrame, { maxLength: 20 })
const unfinished = Arbitrary.schema(Schema.Literals(["", "data: half", "data: whole line\n", "data: x\r\n\r", ":"]))

describe("frames", () => {
  it.prop("are the same wherever the bytes are split, and complete", [frames, unfinished, sizes], ([
    frames,
    unfinished,
    sizes
  ]) => {
    const reader = new SseFrames()
    const bytes = Buffer.from(frames.map(({ text }) => text).join("") + unfinished)
    const seen = cut(bytes, sizes).flatMap((chunk) => reader.push(chunk))
    assert.deepStrictEqual(seen.map(toText), frames.map(({ text }) => text))
    assert.strictEqual(reader.restBytes, Buffer.byteLength(unfinished))
    assert.deepStrictEqual(
      seen.map((frame) => dataOf(frame)).map((data) => data === undefined ? undefined : toText(data)),
      frames.map(({ data }) => data)
    )
  }, { arbitrary: { runs: 500, size: 30 } })

  it("are returned at their last byte, several per push if there are several", () => {
    const reader = new SseFrames()
    assert.deepStrictEqual(reader.push(Buffer.from("data: 1\n")).map(toText), [])
    assert.deepStrictEqual(reader.push(Buffer.from("\n")).map(toText), ["data: 1\n\n"])
    assert.deepStrictEqual(reader.push(Buffer.from("data: 2\r\n\r")).map(toText), [])
    assert.deepStrictEqual(reader.push(Buffer.from("\n: 3\n\ndata: 4\n\ndata")).map(toText), [
      "data: 2\r\n\r\n",
      ": 3\n\n",
      "data: 4\n\n"
    ])
    assert.strictEqual(reader.restBytes, "data".length)
    assert.deepStrictEqual(reader.push(Buffer.from(": 5\n\n")).map(toText), ["data: 5\n\n"])
    assert.strictEqual(reader.restBytes, 0)
  })

  it("may mix line endings", () => {
    const text = "event: a\r\ndata: 1\n\r\ndata: 2\n\n"
    assert.deepStrictEqual(new SseFrames().push(Buffer.from(text)).map(toText), [
      "event: a\r\ndata: 1\n\r\n",
      "data: 2\n\n"
    ])
  })

  it("are copied at most once, even if a large frame comes in small chunks", () => {
    const large = Buffer.from(`data: ${"x".repeat(1024 * 1024)}\n\n`)
    const chunks = cut(large, [4 * 1024])
    const concat = vi.spyOn(Buffer, "concat")
    try {
      const reader = new SseFrames()
      const seen = chunks.flatMap((chunk) => reader.push(chunk))
      assert.deepStrictEqual(seen.map(({ length }) => length), [large.length])
      const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0)
      assert.strictEqual(copied, large.length)
    } finally {
      concat.mockRestore()
    }
  })
})

describe("a frame's data", () => {
  it.each([
    ["data: a\n\n", "a"],
    ["data:a\n\n", "a"],
    ["data:  a \n\n", " a "],
    ["data:\n\n", undefined],
    ["data: a\ndata: b\n\n", "a\nb"],
    ["data: a\r\ndata:\r\ndata: b\r\n\r\n", "a\n\nb"],
    ["event: x\nid: 1\ndata: {\"a\": 1}\n\n", "{\"a\": 1}"],
    [": comment\n\n", undefined],
    ["\n", undefined],
    ["database: a\n\n", undefined],
    [" data: a\n\n", undefined],
    ["event: x\r\ndata: a\r\n\r\n", "a"],
    ["data: a\nid: 1\r\ndatabase: b\ndata: c\r\n\n", "a\nc"],
    ["id: 1\ndata: a\ndata: b", "a\nb"]
  ])("of %j is %j", (frame, expected) => {
    const data = dataOf(Buffer.from(frame))
    assert.strictEqual(data === undefined ? undefined : toText(data), expected)
  })
})

it("many lines of data are joined without a view of each, which would take seconds", () => {
  const frame = Buffer.from(`event: x\n${"data:\n".repeat(1_000)}\n`)
  const views = vi.spyOn(frame, "subarray")
  assert.strictEqual(dataOf(frame)?.length, 999)
  assert.strictEqual(views.mock.calls.length, 0)
})

it.prop("replacing a frame's data keeps every other line", [anyFrame, anyFrame], ([{ data, text }, other]) => {
  const frame = Buffer.from(text)
  const found = dataOf(frame)
  if (found === undefined || data === undefined || other.data === undefined) return
  const replacement = JSON.stringify({ text: other.data }, undefined, data.includes("\n") ? 1 : 0)
  const replaced = replaceData(frame, found, Buffer.from(replacement))
  assert.strictEqual(toText(dataOf(replaced)!), replacement)
  const others = (text: string) => text.split("\n").filter((line) => !line.startsWith("data:"))
  assert.deepStrictEqual(others(toText(replaced)), others(text))
  assert.deepStrictEqual(new SseFrames().push(replaced).map(toText), [toText(replaced)])
}, { arbitrary: { runs: 500 } })
