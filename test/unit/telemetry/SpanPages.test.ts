/** The buffer of spans before their export. */
import { assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { afterEach } from "vitest"
import { pageBytes, SpanPages } from "../../../shared/telemetry/SpanPages.ts"

const encoding = {
  before: Buffer.from("["),
  after: Buffer.from("]"),
  maxBytes: (text: string) => 3 * text.length,
  write: (text: string, page: Buffer, from: number) => from + page.write(text, from)
}

const everyMs = 100

const gatherSpans = () => {
  const pages: Array<string> = []
  const spans = new SpanPages(everyMs, encoding, (page) => {
    pages.push(page.toString())
    // whatever is written into this memory later must not be in this page
    spans.recycle(page)
  })
  return { pages, spans }
}

describe("buffered spans", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("are exported together after the interval, in the order in which they ended", () => {
    const { pages, spans } = gatherSpans()
    for (const text of ["a", "é", "😀"]) spans.add(text)
    vi.advanceTimersByTime(everyMs - 1)
    assert.isEmpty(pages)
    vi.advanceTimersByTime(1)
    assert.deepStrictEqual(pages, ["[a,é,😀]"])
    spans.add("b")
    vi.advanceTimersByTime(everyMs)
    assert.deepStrictEqual(pages, ["[a,é,😀]", "[b]"])
  })

  it("are exported at the end, and nothing if there are none", () => {
    const { pages, spans } = gatherSpans()
    spans.flush()
    spans.add("a")
    spans.flush()
    spans.flush()
    vi.advanceTimersByTime(10 * everyMs)
    assert.deepStrictEqual(pages, ["[a]"])
  })

  it("are complete, whatever their number and length", () => {
    const { pages, spans } = gatherSpans()
    const many = Array.from({ length: 6_000 }, (_, index) => `${index}`.padEnd(1_000, "é"))
    const all = [...many, "é".repeat(pageBytes), "b"]
    for (const text of all) spans.add(text)
    assert.isAbove(pages.length, 5)
    for (const page of pages.slice(0, 5)) assert.isAtMost(Buffer.byteLength(page), pageBytes)
    spans.flush()
    assert.strictEqual(pages.map((page) => page.slice(1, -1)).join(","), all.join(","))
    assert.isTrue(pages.every((page) => page.startsWith("[") && page.endsWith("]")))
  })
})
