/** Forms are read as Node reads them, wherever a step ends, and what is no form is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Form from "../../../shared/bounds/Form.ts"

const boundary = "----formdata-0123456789"
const contentType = `multipart/form-data; boundary=${boundary}`

const part = (headers: string, value: string) => `--${boundary}\r\n${headers}\r\n\r\n${value}\r\n`
const field = (name: string, value: string) => part(`content-disposition: form-data; name="${name}"`, value)
const end = `--${boundary}--\r\n`

const outcomeOf = (body: string, type = contentType) =>
  Effect.match(Form.read(type, Buffer.from(body)), {
    onFailure: ({ excess }) => excess ?? "no form",
    onSuccess: (form) => [...form].map(([name, value]) => `${name}=${typeof value === "string" ? value : value.name}`)
  })

/** The parts of a form, files with their bytes. */
const partsOf = async (form: FormData) => {
  const parts: Array<unknown> = []
  for (const [name, value] of form) {
    parts.push([name, typeof value === "string" ? value : [value.name, value.type, await value.text()]])
  }
  return parts
}

describe("a form", () => {
  it.effect("is read as its client wrote it", () =>
    Effect.gen(function*() {
      const form = new FormData()
      form.append("model", "großes-modell")
      form.append("empty", "")
      form.append("lines", "a\r\n--b\r\n\r\nc")
      form.append("image[]", new File(["\r\n--", new Uint8Array([0, 13, 10, 255])], "a.png", { type: "image/png" }))
      form.append("image[]", new File([], "größe.png", { type: "image/png" }))
      const sent = new Response(form)
      const body = new Uint8Array(yield* Effect.promise(() => sent.arrayBuffer()))
      const read = yield* Form.read(sent.headers.get("content-type")!, body)
      assert.deepStrictEqual(yield* Effect.promise(() => partsOf(read)), yield* Effect.promise(() => partsOf(form)))
    }))

  it.effect("is the same wherever a step ends", () =>
    Effect.gen(function*() {
      const stepBytes = 2 * 1024 * 1024
      const head = field("a", "").length - 2
      for (let offset = -10; offset < 2 * field("b", "x").length; offset++) {
        const long = "y".repeat(stepBytes - head - offset)
        const form = yield* Form.read(
          contentType,
          Buffer.from(field("a", long) + field("b", "x") + field("c", "z") + end)
        )
        assert.deepStrictEqual([...form].map(([name, value]) => [name, String(value).length]), [
          ["a", long.length],
          ["b", 1],
          ["c", 1]
        ])
      }
    }))

  it.effect("may have text before its first boundary and after its last", () =>
    Effect.gen(function*() {
      const after = field("b", "2") + end
      assert.deepStrictEqual(yield* outcomeOf(`before\r\n${field("a", "1")}${end}after\r\n${after}`), ["a=1"])
    }))

  it.effect("may have a boundary in quotes", () =>
    Effect.gen(function*() {
      const body = `--a "b\\\r\ncontent-disposition: form-data; name=c\r\n\r\nd\r\n--a "b\\--`
      assert.deepStrictEqual(yield* outcomeOf(body, `multipart/form-data; boundary="a \\"b\\\\"`), ["c=d"])
    }))

  const wrong: ReadonlyArray<readonly [what: string, body: string]> = [
    ["without an end", field("a", "1")],
    ["with a part without a name", part("content-disposition: form-data", "1") + end],
    ["with a part without a disposition", part("content-type: text/plain", "1") + end],
    ["with a part of another disposition", part("content-disposition: attachment; name=a", "1") + end],
    ["with a header that ends in a carriage return alone", `--${boundary}\r\ncontent-disposition: form-data\r`],
    ["that is empty", ""]
  ]
  it.effect.each(wrong)("%s is refused", ([, body]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* outcomeOf(body), "no form")
    }))

  it.effect("may have 1,000 parts", () =>
    Effect.gen(function*() {
      assert.lengthOf(yield* outcomeOf(field("a", "1").repeat(1_000) + end), 1_000)
      assert.strictEqual(yield* outcomeOf(field("a", "1").repeat(1_001) + end), "more than 1000 parts")
    }))
})
