/** The built-in painter: its pictures follow the prompt's colours, words and seed, and are labelled as generated. */
import { assert, describe, it } from "@effect/vitest"
import { Canvas } from "../../../shared/painter/Canvas.ts"
import {
  describe as describePainting,
  paint,
  type Painting,
  steps,
  writeMachineMark,
  writePlaceholderMark
} from "../../../shared/painter/Painting.ts"

const painting = (prompt: string, more: Partial<Painting> = {}): Painting => ({
  prompt,
  negativePrompt: "",
  width: 192,
  height: 128,
  seed: 1,
  ...more
})

const pixels = (prompt: string, more: Partial<Painting> = {}): Uint8Array => paint(painting(prompt, more)).data

const marked = (prompt: string, mark: (canvas: Canvas) => void): Uint8Array => {
  const canvas = paint(painting(prompt))
  mark(canvas)
  return canvas.data
}

/** How many pixels differ visibly between two pictures of the same size. */
const difference = (a: Uint8Array, b: Uint8Array): number => {
  let count = 0
  for (let at = 0; at < a.length; at += 4) {
    if ([0, 1, 2].some((channel) => Math.abs((a[at + channel] ?? 0) - (b[at + channel] ?? 0)) > 8)) count++
  }
  return count
}

const mean = (data: Uint8Array, channel: number): number => {
  let total = 0
  for (let at = channel; at < data.length; at += 4) total += data[at] ?? 0
  return total / (data.length / 4)
}

describe("a painting", () => {
  it("has the colours that the prompt names or suggests", () => {
    const [red, blue] = [pixels("a red meadow"), pixels("a blue meadow")]
    assert.isAbove(mean(red, 0), mean(blue, 0) + 15)
    assert.isAbove(mean(blue, 2), mean(red, 2) + 15)
    const [noon, night] = [pixels("mountains at noon"), pixels("mountains at night")]
    assert.isAbove(mean(noon, 0) + mean(noon, 2), mean(night, 0) + mean(night, 2) + 60)
  })

  it("shows the words of the prompt, except those it cannot write", () => {
    assert.include(describePainting(painting("Crème brûlée, 雨 tonight")), "“creme brulee, tonight”")
    assert.include(describePainting(painting("雨")), "without words")
    assert.include(describePainting(painting("a boat", { negativePrompt: "boat" })), "“a”")
    const long = describePainting(painting("word ".repeat(5_000)))
    assert.isBelow(long.length, 250)
    assert.include(long, "word...”")
    assert.isAbove(difference(pixels("tiger"), pixels("")), 300)
  })

  it("says that it is generated, in its description and in the picture", () => {
    assert.match(describePainting(painting("a tiger")), /placeholder by the built-in painter, which is not a model/)
    // the label is at the lower edge of every picture, light letters with a dark outline
    for (const prompt of ["", "a tiger", "snow"]) {
      const corner = marked(prompt, writePlaceholderMark).slice(192 * 4 * 112)
      let light = 0
      for (let at = 0; at < corner.length; at += 4) if ((corner[at] ?? 0) > 200 && (corner[at + 1] ?? 0) > 200) light++
      assert.isAbove(light, 60)
    }
  })

  it("is the same for the same prompt and seed, and different for another seed or word", () => {
    for (const prompt of ["mountains at noon", "justice", ""]) {
      assert.deepStrictEqual(pixels(prompt), pixels(prompt))
      assert.isAbove(difference(pixels(prompt), pixels(prompt, { seed: 2 })), 1_000)
    }
    assert.isAbove(difference(pixels("mountains at noon"), pixels("tall mountains at noon")), 1_000)
  })

  it("has the requested size and no transparent pixel", () => {
    for (const [width, height] of [[64, 64], [64, 400], [400, 64], [300, 200], [2, 2]] as const) {
      for (const prompt of ["flowers by the sea under clouds", "justice", "x".repeat(500)]) {
        const data = pixels(prompt, { width, height })
        assert.strictEqual(data.length, width * height * 4)
        assert.isTrue(data.every((value, at) => at % 4 !== 3 || value === 255), `${prompt} ${width}x${height}`)
      }
    }
  })

  it("carries a machine-generated mark in its lower right corner only", () => {
    const changed = (from: number, to: number) =>
      difference(pixels("mountains").subarray(from, to), marked("mountains", writeMachineMark).subarray(from, to))
    const most = 192 * 128 * 4 * 0.75
    assert.strictEqual(changed(0, most), 0)
    assert.isAbove(changed(most, 192 * 128 * 4), 100)
  })

  it("is painted in steps, between which other work can run", () => {
    assert.isAbove([...steps(painting("a tiger", { width: 256, height: 1_024 }))].length, 15)
  })
})

describe("a canvas", () => {
  it("draws strokes with smooth edges, and clips strokes outside", () => {
    const canvas = new Canvas(20, 20)
    canvas.stroke(-50, 10, 50, 10, 2, [255, 255, 255])
    const red = (x: number, y: number) => canvas.data[(y * 20 + x) * 4] ?? -1
    assert.deepStrictEqual([red(10, 10), red(10, 4), red(0, 10), red(19, 10)], [255, 0, 255, 255])
    assert.isTrue(red(10, 12) > 0 && red(10, 12) < 255)
  })
})
