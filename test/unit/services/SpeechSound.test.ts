/** The parts of the speech engine that need no synthesiser: splitting text and resampling. */
import { assert, describe, it } from "@effect/vitest"
import { resample, toLittleEndian } from "../../../services/speech/Samples.ts"
import { utterancesOf } from "../../../services/speech/Utterances.ts"
import { rms } from "../../fixture/media/Sound.ts"

const tone = (hertz: number, seconds: number, sampleRate: number): Int16Array =>
  Int16Array.from(
    { length: Math.round(seconds * sampleRate) },
    (_, index) => 10_000 * Math.sin(2 * Math.PI * hertz * index / sampleRate)
  )

describe("the resampler", () => {
  for (const [hertz, least] of [[100, 1_000], [1_000, 1_000], [4_000, 20]] as const) {
    it(`keeps a tone of ${hertz} Hz from 22.05 to 24 kHz`, () => {
      const made = resample(tone(hertz, 0.5, 22_050), 22_050, 24_000)
      const wanted = tone(hertz, 0.5, 24_000)
      assert.closeTo(made.length, wanted.length, 2)
      // except for the edges, where the tone starts and ends abruptly
      const middle = wanted.slice(100, -100)
      const error = middle.map((value, index) => value - (made[index + 100] ?? 0))
      assert.isBelow(rms(error), rms(middle) / least)
    })
  }

  it("returns as few samples as it gets", () => {
    assert.lengthOf(resample(new Int16Array(0), 22_050, 24_000), 0)
    assert.deepStrictEqual([...resample(Int16Array.of(7), 22_050, 24_000)], [7])
  })
})

describe("samples", () => {
  it("are encoded as little-endian bytes", () => {
    assert.deepStrictEqual([...toLittleEndian(Int16Array.of(0, 1, -1, 258))], [0, 0, 1, 0, 255, 255, 2, 1])
  })
})

describe("the splitter of utterances", () => {
  const squeezed = (text: string) => text.replaceAll(/\s+/g, "")
  const prose = "It was the best of times. It was the worst of times, it was the age of wisdom! Dr. Who? ".repeat(40)
  const texts: ReadonlyArray<readonly [string, string]> = [
    ["prose", prose],
    ["one long sentence with commas", "and so on, and so forth, ".repeat(100)],
    ["one long sentence without commas", "and so on ".repeat(300)],
    ["a very long word", "x".repeat(4_096)],
    ["many emoji", "🙂".repeat(2_048)],
    ["Chinese", "你好，今天天气很好。我们去公园吧！".repeat(60)],
    ["paragraphs", "One.\n\nTwo.\r\n\r\nThree.\n"],
    ["white space", " \n\t  "],
    ["long white space between words", `a${" ".repeat(1_000)}b`]
  ]
  for (const [title, text] of texts) {
    it(`splits ${title} into short pieces without loss`, () => {
      const pieces = [...utterancesOf(text)]
      assert.strictEqual(squeezed(pieces.join("")), squeezed(text))
      for (const piece of pieces) {
        assert.isAtMost(piece.length, 300)
        assert.notStrictEqual(piece.trim(), "")
        assert.isTrue(piece.isWellFormed())
      }
    })
  }

  it("starts with the first sentence and continues with longer pieces", () => {
    const [first, second] = utterancesOf(prose)
    assert.strictEqual(first, "It was the best of times.")
    assert.isAbove(second?.length ?? 0, 100)
  })

  it("splits between words", () => {
    for (const piece of [...utterancesOf("and so on ".repeat(300))]) {
      assert.match(piece, /^(and|so|on)\b.*\b(and|so|on)$/)
    }
  })

  it("removes characters that would end the text for the synthesiser", () => {
    assert.deepStrictEqual([...utterancesOf("one\u0000two\u001b three\nfour")], ["one two  three\nfour"])
    assert.deepStrictEqual([...utterancesOf("half \ud83d of one")], ["half \ufffd of one"])
  })
})
