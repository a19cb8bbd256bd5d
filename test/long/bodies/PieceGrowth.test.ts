/** Time grows about linearly with input in what reads a body or an answer piece by piece: see `RequestGrowth.test.ts`. */
import { assert, describe } from "@effect/vitest"
import { BatchLines, maxLines } from "../../../shared/files/BatchLines.ts"
import { UrlScan } from "../../../shared/provider/dialects/images/UrlScan.ts"
import { EchoFilter } from "../../../shared/provider/exchange/continuation/EchoFilter.ts"
import { growsLinearly } from "../../fixture/Growth.ts"

describe("the check of a batch's lines takes linear time for", () => {
  const line = (id: string, text: string) =>
    JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body: { model: "m", text } })

  const check = (content: string, pieceBytes: number) => {
    const bytes = Buffer.from(content)
    return () => {
      const lines = new BatchLines()
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        assert.isUndefined(lines.push(bytes.subarray(at, at + pieceBytes)))
      }
    }
  }

  growsLinearly(
    "lines",
    (count) =>
      check(Array.from({ length: Math.min(count, maxLines) }, (_, at) => line(String(at), "")).join("\n"), 65_536)
  )
  growsLinearly("pieces of one line", (count) => check(line("a", "x".repeat(10 * count)), 10))
})

describe("a continuation takes linear time that repeats", () => {
  growsLinearly("everything", (words) => {
    const text = "word ".repeat(words)
    return () => {
      const filter = new EchoFilter(text)
      for (let at = 0; at < text.length; at += 4) filter.push(text.slice(at, at + 4))
      assert.strictEqual(filter.push("end") + filter.end(), "end")
    }
  })
})

describe("the search for URLs takes linear time for", () => {
  growsLinearly("URLs", (count) => {
    const text = `{"data":[${Array.from({ length: count }, () => `{"url":"https://x/\\\\"}`).join()}]}`
    const pieces = (text.match(/[^]{1,1000}/g) ?? []).map((piece) => Buffer.from(piece))
    return () => {
      const scan = new UrlScan((address) => address.startsWith("https://"))
      for (const piece of pieces) scan.push(piece)
      assert.isFalse(scan.isRefused)
    }
  })
})
