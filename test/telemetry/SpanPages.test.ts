/** Where spans gather until they are exported. */
import { assert, describe, it } from "@effect/vitest"
import { type SpanPage, SpanPages } from "../../shared/telemetry/SpanPages.ts"

const millisecond = 1_000_000n

const gathered = (everyMs = 100) => {
  const pages: Array<SpanPage> = []
  return { pages, spans: new SpanPages(everyMs, (page) => pages.push(page)) }
}

const textOf = (page: SpanPage | undefined) => Buffer.from(page?.take() ?? []).toString()

describe("spans that gather", () => {
  it("are told in the order in which they ended, with commas between", () => {
    const { pages, spans } = gathered()
    for (const text of ["a", "é", "😀"]) spans.add(text, 0n)
    assert.lengthOf(pages, 1)
    assert.strictEqual(textOf(pages[0]), "a,é,😀")
  })

  it("are not added to what was taken", () => {
    const { pages, spans } = gathered()
    spans.add("a", 0n)
    assert.strictEqual(textOf(pages[0]), "a")
    spans.add("b", 0n)
    assert.deepStrictEqual(pages.map(textOf), ["a", "b"])
  })

  it("begin anew where nobody has taken the last ones in time: they were dropped", () => {
    const { pages, spans } = gathered()
    spans.add("a", 0n)
    spans.add("b", 199n * millisecond)
    spans.add("c", 200n * millisecond)
    assert.deepStrictEqual(pages.map(textOf), ["a,b", "c"])
  })

  it("are whole, however long they are", () => {
    const { pages, spans } = gathered()
    const long = "é".repeat(100_000)
    const many = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(1_000, "é"))
    for (const text of [...many, long, "b"]) spans.add(text, 0n)
    assert.isAbove(pages.length, 3)
    assert.strictEqual(pages.map(textOf).join(","), [...many, long, "b"].join(","))
  })
})
