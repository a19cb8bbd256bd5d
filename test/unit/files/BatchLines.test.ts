/** The check of a batch's lines: what it accepts, and what it names. */
import { assert, describe, it } from "@effect/vitest"
import { BatchLines, maxIdLength, maxLineBytes, maxLines } from "../../../shared/files/BatchLines.ts"
import { randomFrom } from "../../fixture/general/Random.ts"

const line = (id: string, fields: object = {}) =>
  JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body: { model: "m" }, ...fields })

const check = (content: string | Uint8Array, pieceBytes = 65_536) => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content
  const lines = new BatchLines()
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const wrong = lines.push(bytes.subarray(at, at + pieceBytes))
    if (wrong !== undefined) return wrong
  }
  return lines.end() ?? lines.count
}

describe("lines of a batch", () => {
  it("are counted without empty ones, whatever ends them", () => {
    assert.strictEqual(check(`${line("a")}\n${line("b")}`), 2)
    assert.strictEqual(check(`\n${line("a")}\r\n\r\n${line("b")}\r\n\n`), 2)
    assert.strictEqual(check(line("é".repeat(maxIdLength))), 1)
  })

  it("are refused with the line and its field", () => {
    const cases: ReadonlyArray<readonly [content: string | Uint8Array, RegExp]> = [
      ["", /no lines/],
      ["\n\n", /no lines/],
      [`${line("a")}\n{`, /^Line 2 .*JSON/],
      [`${line("a")}\n\n[]`, /^Line 3 must be an object/],
      [`${line("a")}\nnull`, /^Line 2 must be an object/],
      [`\u{feff}${line("a")}`, /^Line 1 .*JSON/],
      [Buffer.concat([Buffer.from(line("a").slice(0, -1)), Buffer.of(0xff), Buffer.from("}")]), /^Line 1 .*UTF-8/],
      [line("a", { custom_id: undefined }), /^Line 1 .*`custom_id`/],
      [line(""), /^Line 1 .*`custom_id`/],
      [line("a".repeat(maxIdLength + 1)), /^Line 1 .*`custom_id`/],
      [line("a", { custom_id: 7 }), /^Line 1 .*`custom_id`/],
      [line("a", { method: "GET" }), /^Line 1 .*`method`/],
      [line("a", { url: "v1" }), /^Line 1 .*`url`/],
      [line("a", { body: [] }), /^Line 1 .*`body`/],
      [line("a", { body: "{}" }), /^Line 1 .*`body`/],
      [`${line("a")}\n${line("b")}\n${line("a")}`, /^Line 3 .*`custom_id` is also/],
      [line("a", { body: JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`) }), /^Line 1 nests deeper/],
      [line("a", { body: { text: "x".repeat(maxLineBytes) } }), /^Line 1 is longer/],
      [Array.from({ length: maxLines + 1 }, (_, at) => line(String(at))).join("\n"), /more than 50000 lines/],
      [`${line("a")}${"\r\n".repeat(maxLines + 2)}`, /more than 50000 empty lines/]
    ]
    for (const [content, expected] of cases) assert.match(String(check(content)), expected)
  })

  it("are judged alike, however the bytes are cut", () => {
    const random = randomFrom(25)
    const parts = [line("a"), line("b", { body: { text: "ä\n🐈" } }), "", "\r", "{", line("a", { url: 1 }), line("c")]
    for (let round = 0; round < 300; round++) {
      const content = Array.from(
        { length: 1 + Math.floor(random() * 6) },
        () => parts[Math.floor(random() * parts.length)]
      )
        .join("\n")
      const whole = check(content)
      assert.strictEqual(check(content, 1), whole, content)
      assert.strictEqual(check(content, 1 + Math.floor(random() * 90)), whole, content)
    }
  })
})
