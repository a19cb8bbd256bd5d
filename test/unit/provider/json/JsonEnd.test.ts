/** The end of an object or a list is noticed at its last bracket, however its text is split. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { JsonEnd } from "../../../../shared/provider/json/JsonEnd.ts"

const Text = Schema.Union([Schema.String, Schema.Literals(["", "\\", "\"", "}", "{\"", "\\\"}", "[]"])])
const anyObject = Arbitrary.schema(
  Schema.Record(Text, Schema.Union([Text, Schema.Number, Schema.Array(Text), Schema.Record(Text, Text)]))
)

const isWhole = (...pieces: ReadonlyArray<string>): boolean => {
  const end = new JsonEnd()
  for (const piece of pieces) end.push(piece)
  return end.isWhole
}

describe("the end", () => {
  it.prop("comes with the last character, and not before", [anyObject], ([value]) => {
    const json = ` ${JSON.stringify(value)}`
    assert.isFalse(isWhole(json.slice(0, -1)))
    assert.isTrue(isWhole(json))
    assert.isTrue(isWhole(...json))
    assert.isTrue(isWhole(json, " "))
  }, { arbitrary: { runs: 500 } })

  it.each(["", "}", "}{", "null", "\"{}\"", "1"])("of %j does not come", (text) => assert.isFalse(isWhole(text)))
})
