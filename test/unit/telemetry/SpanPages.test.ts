/** The buffer of spans before their export. */
import { assert, describe, it } from "@effect/vitest"
import { type SpanPage, SpanPages } from "../../../shared/telemetry/SpanPages.ts"

const millisecond = 1_000_000n

const gatherSpans = (everyMs = 100) => {
  const pages: Array<SpanPage> = []
  return { pages, spans: new SpanPages<string>(everyMs, (text) => text, (page) => pages.push(page)) }
}

const textOf = (page: SpanPage | undefined) => Buffer.from(page?.take() ?? []).toString()

describe("buffered spans", () => {
  it("are exported in the order in which they ended, separated by commas", () => {
    const { pages, spans } = gatherSpans()
    for (const text of ["a", "é", "😀"]) spans.add(text, 0n)
    assert.lengthOf(pages, 1)
    assert.strictEqual(textOf(pages[0]), "a,é,😀")
  })

  it("are not added to an exported page", () => {
    const { pages, spans } = gatherSpans()
    spans.add("a", 0n)
    assert.strictEqual(textOf(pages[0]), "a")
    spans.add("b", 0n)
    assert.deepStrictEqual(pages.map(textOf), ["a", "b"])
  })

  it("start a new page after the interval, and the old page remains available", () => {
    const { pages, spans } = gatherSpans()
    spans.add("a", 0n)
    spans.add("b", 199n * millisecond)
    spans.add("c", 200n * millisecond)
    assert.deepStrictEqual(pages.map(textOf), ["a,b", "c"])
  })

  it("are encoded when exported, or when there are many", () => {
    const made: Array<number> = []
    const pages: Array<SpanPage> = []
    const spans = new SpanPages<number>(100, (number) => {
      made.push(number)
      return String(number)
    }, (page) => pages.push(page))
    spans.add(0, 0n)
    assert.deepStrictEqual(made, [])
    assert.strictEqual(textOf(pages[0]), "0")
    const many = Array.from({ length: 1_000 }, (_, index) => index + 1)
    for (const number of many) spans.add(number, 0n)
    assert.isAbove(made.length, 900)
    assert.strictEqual(textOf(pages[1]), many.join(","))
  })

  it("are complete, whatever their length", () => {
    const { pages, spans } = gatherSpans()
    const long = "é".repeat(100_000)
    const many = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(1_000, "é"))
    for (const text of [...many, long, "b"]) spans.add(text, 0n)
    const texts: Array<string> = []
    // taking the last page may add another
    for (const page of pages) texts.push(textOf(page))
    assert.isAbove(pages.length, 3)
    assert.strictEqual(texts.join(","), [...many, long, "b"].join(","))
  })
})
