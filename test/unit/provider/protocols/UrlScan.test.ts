/** URLs in relayed answers are found in any notation, wherever a chunk ends. */
import { assert, describe, it } from "@effect/vitest"
import { UrlScan } from "../../../../shared/provider/dialects/images/UrlScan.ts"

const isHttps = (address: string): boolean => address.startsWith("https://")

const isRefused = (...pieces: ReadonlyArray<string>): boolean => {
  const scan = new UrlScan(isHttps)
  for (const piece of pieces) scan.push(Buffer.from(piece))
  return scan.isRefused
}

/** The verdicts on the text as a whole, and split in two at every position. */
const verdicts = (text: string): ReadonlySet<boolean> =>
  new Set(Array.from({ length: text.length }, (_, at) => isRefused(text.slice(0, at), text.slice(at))))

const refused = [
  `{"data":[{"url":"javascript:x"}]}`,
  `{"data":[{"b64_json":"AAAA"},{"url" :\n "x"}]}`,
  `{"data":[{"\\u0075rl":"x"}]}`,
  `{"a":"\\\\","url":"x"}`,
  `{"a":"\\"","url":"x"}`,
  `{"a":["url"],"b":{"url":"https\\u003b//x"}}`,
  `data: {"type":"done","url":"x"}\n\n`,
  `data: {"url"\ndata: :"x"}\n\n`,
  `data: {"url":\ndata: "x"}\n\n`
]

const accepted = [
  `{"data":[{"url":"https://x/a.png"},{"url":null},{"url":""},{"url":"https:\\/\\/x\\u002f"}]}`,
  `{"data":[{"revised_prompt":"\\"url\\":\\"x\\"","note":"url","x":["url","y"]}]}`,
  `{"url":{"a":"x"},"curl":"x","url2":"x"}`,
  `data: {"type":"done","b64_json":"url"}\n\n`
]

describe("an unsafe URL", () => {
  it.each(refused)("is found in %s", (text) => assert.deepStrictEqual(verdicts(text), new Set([true])))

  it.each(accepted)("is not found in %s", (text) => assert.deepStrictEqual(verdicts(text), new Set([false])))

  it("longer than the scanner's buffer is judged by its start", () => {
    for (const end of ["a", "\\\\", "\\u0061", "\\n"]) {
      for (let length = 4_070; length < 4_100; length++) {
        const rest = `${"a".repeat(length)}${end.repeat(10)}`
        assert.isFalse(isRefused(`{"url":"https://${rest}"}`), `${length} ${end}`)
        assert.isTrue(isRefused(`{"url":"gopher://${rest}"}`), `${length} ${end}`)
      }
    }
  })
})
