/** Amounts in the console: a cost above zero is never shown as zero. */
import { assert, describe, it } from "@effect/vitest"
import { money, size } from "../../../services/console/web/data/Format.ts"

describe("an amount of money", () => {
  it.each([
    [0, "$0.00"],
    [0.5, "$0.50"],
    [0.123_456, "$0.1235"],
    [0.001_05, "$0.0011"],
    [0.000_012_5, "$0.000013"],
    [0.000_000_05, "$0.00000005"],
    [0.999_99, "$1.00"],
    [1, "$1.00"],
    [1_234.567, "$1,234.57"],
    [98_765_432_109.5, "$98,765,432,109.50"]
  ])("of %s US dollars is %s", (usd, shown) => {
    assert.strictEqual(money(usd), shown)
  })
})

describe("a size", () => {
  it.each([
    [0, "0 B"],
    [1, "1 B"],
    [999, "999 B"],
    [1_000, "1 KB"],
    [1_234_567, "1.2 MB"],
    [64 * 1024 ** 3, "68.7 GB"],
    [5_000_000_000_000, "5,000 GB"]
  ])("of %s bytes is %s", (bytes, shown) => {
    assert.strictEqual(size(bytes), shown)
  })
})
