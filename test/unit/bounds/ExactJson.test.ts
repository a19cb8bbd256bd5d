/** Every number of a JSON text is printed again as it was written. */
import { assert, describe, it } from "@effect/vitest"
import * as ExactJson from "../../../shared/bounds/ExactJson.ts"

/** The right value of each row is the text itself, or what RFC 8259 calls the same number. */
const numbers = [
  "725653563933458432",
  "9223372036854775807",
  "18446744073709551615",
  "-9007199254740993",
  "123456789012345678901234567890",
  "0.1234567890123456789",
  "12345678.90123456789",
  "1.0",
  "1.10",
  "0.0",
  "-0",
  "-0.0",
  "1e5",
  "1E+400",
  "0.0000001",
  "0",
  "7",
  "-12.5"
]

describe("a number", () => {
  it.each(numbers)("keeps its digits: %s", (number) => {
    for (const text of [number, `[${number}]`, `{"a":${number}}`, `{"a":[{"b":[true,${number}]}]}`]) {
      assert.strictEqual(JSON.stringify(ExactJson.parse(text)), text)
    }
  })

  it("keeps them after white space, and beside texts that look like numbers", () => {
    const text = "{\"a\": \n\t 725653563933458432 , \"b\" :1.0, \"c\":\", 1.0\"}"
    assert.strictEqual(JSON.stringify(ExactJson.parse(text)), "{\"a\":725653563933458432,\"b\":1.0,\"c\":\", 1.0\"}")
  })

  it("is JavaScript's own if that prints the same", () => {
    assert.deepStrictEqual(ExactJson.parse("[1,-12.5,1234567890123,0.25]"), [1, -12.5, 1_234_567_890_123, 0.25])
  })
})

describe("a text without such numbers", () => {
  it.each(["{\"a\":\"1.05 and 3e7\",\"b\":[12,0.5]}", "{\"created\":1700000000,\"t\":1700000000123}", "\"a, b: c\""])(
    "is parsed at the usual speed: %s",
    (text) => {
      assert.isFalse(ExactJson.mayHoldExact(text))
    }
  )
})

describe("settled numbers", () => {
  const members = new Map([["args", "written"], ["schema", "value"]] as const)
  it.each([
    [
      "a setting",
      "{\"temperature\":1.0,\"seed\":12345678901234567890}",
      "{\"temperature\":1,\"seed\":12345678901234567000}"
    ],
    [
      "arguments",
      "{\"args\":{\"a\":1.0,\"b\":[12345678901234567890]}}",
      "{\"args\":{\"a\":1.0,\"b\":[12345678901234567890]}}"
    ],
    [
      "a schema",
      "{\"schema\":{\"minimum\":0.0,\"maximum\":9223372036854775807}}",
      "{\"schema\":{\"minimum\":0,\"maximum\":9223372036854775807}}"
    ],
    [
      "a schema's other forms",
      "{\"schema\":{\"a\":1e2,\"b\":0.10,\"c\":1e400}}",
      "{\"schema\":{\"a\":100,\"b\":0.1,\"c\":1e400}}"
    ],
    ["a list under the same name", "{\"args\":[{\"top_p\":1.0}]}", "{\"args\":[{\"top_p\":1}]}"]
  ])("of %s", (_, text, expected) => {
    assert.strictEqual(JSON.stringify(ExactJson.settle(ExactJson.parse(text), members)), expected)
  })
})
