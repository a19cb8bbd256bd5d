/** The painter: what it understands of a prompt, and that what it says is what is on the canvas. */
import { assert, describe, it } from "@effect/vitest"
import { createCanvas } from "@napi-rs/canvas"
import { toPng } from "../../shared/painter/Picture.ts"
import { compose, overlayElements, type Painting } from "../../shared/painter/Scene.ts"

const painting = (prompt: string, more: Partial<Painting> = {}): Painting => ({
  prompt,
  width: 192,
  height: 128,
  seed: 1,
  ...more
})

const describing = (prompt: string, more: Partial<Painting> = {}): string => compose(painting(prompt, more)).description

/** The pixels of a moment, four bytes each. */
const pixels = (of: Painting, seconds = 0): Buffer => {
  const context = createCanvas(of.width, of.height).getContext("2d")
  compose(of).paint(context, seconds)
  return Buffer.from(context.getImageData(0, 0, of.width, of.height).data)
}

/** How many pixels of two pictures of one size differ by more than a trace. */
const difference = (a: Buffer, b: Buffer): number => {
  let count = 0
  for (let at = 0; at < a.length; at += 4) {
    if ([0, 1, 2].some((channel) => Math.abs((a[at + channel] ?? 0) - (b[at + channel] ?? 0)) > 8)) count++
  }
  return count
}

const sum = (data: Buffer, channel: number): number => {
  let total = 0
  for (let at = channel; at < data.length; at += 4) total += data[at] ?? 0
  return total / (data.length / 4)
}

const elements: ReadonlyArray<readonly [prompt: string, element: string]> = [
  ["stars", "stars"],
  ["an aurora", "an aurora"],
  ["the sun", "a sun"],
  ["the moon", "a moon"],
  ["clouds", "clouds"],
  ["a rainbow", "a rainbow"],
  ["birds", "birds"],
  ["balloons", "hot-air balloons"],
  ["a rocket", "a rocket"],
  ["mountains", "mountains"],
  ["a meadow", "hills"],
  ["the desert", "a desert"],
  ["snow", "snow"],
  ["the ocean", "a sea"],
  ["a beach", "a beach"],
  ["a river", "a river"],
  ["a road", "a road"],
  ["fog", "fog"],
  ["a skyline", "a city"],
  ["a cottage", "a house"],
  ["a castle", "a castle"],
  ["a lighthouse", "a lighthouse"],
  ["a sailing boat", "a sailing boat"],
  ["a windmill", "a windmill"],
  ["lanterns", "lanterns"],
  ["a forest", "a forest"],
  ["an oak", "trees"],
  ["palms", "palms"],
  ["grass", "grass"],
  ["flowers", "flowers"],
  ["lightning", "lightning"],
  ["fish", "fish"],
  ["a hiker", "a walker"],
  ["a kitten", "a cat"],
  ["a robot", "a robot"],
  ["a heart", "a heart"],
  ["butterflies", "butterflies"],
  ["rain", "rain"],
  ["snowing", "snowfall"]
]

describe("a prompt", () => {
  it.each(elements)("%s shows %s, and a negative prompt takes it away", (prompt, element) => {
    assert.include(describing(prompt), element)
    const without = painting(`${prompt}, a sunny day with a road`, { negativePrompt: prompt })
    const shown = painting(`${prompt}, a sunny day with a road`)
    assert.isFalse(compose(without).description.split(/ with |, | and /).includes(element))
    if (compose(shown).description.includes(element)) assert.isAbove(difference(pixels(shown), pixels(without)), 30)
  })

  it("is understood in the plural, in upper case, in another script", () => {
    assert.include(describing("BUTTERFLIES over Cities"), "a city")
    assert.include(describing("BUTTERFLIES over Cities"), "butterflies")
    assert.match(describing("日落时大海上的帆船"), /^a sunset with .*a sea and a sailing boat$/)
  })

  it("sets the hour, the season and the colours", () => {
    const hours = ["noon", "sunrise", "sunset", "midnight", "a thunderstorm"].map((hour) =>
      describing(`mountains at ${hour}`)
    )
    assert.deepStrictEqual(hours.map((text) => text.split(" with ")[0]), [
      "a day",
      "a dawn",
      "a sunset",
      "a night",
      "a stormy day"
    ])
    const [day, night] = [pixels(painting("mountains at noon")), pixels(painting("mountains at night"))]
    assert.isAbove(sum(day, 0) + sum(day, 2), sum(night, 0) + sum(night, 2) + 60)
    const [red, blue] = [pixels(painting("a red meadow at noon")), pixels(painting("a blue meadow at noon"))]
    assert.isAbove(sum(red, 0), sum(blue, 0) + 15)
    assert.isAbove(sum(blue, 2), sum(red, 2) + 15)
  })

  it("says itself what must not be there", () => {
    assert.notInclude(describing("a beach without palms, no clouds and not a single bird"), "palms")
    assert.notInclude(describing("a beach without palms, no clouds"), "clouds")
    assert.include(describing("no clouds, palms"), "palms")
  })

  it("that names nothing the painter knows becomes an abstract composition of its own", () => {
    const prompts = ["justice", "synergy", "the third theorem", "quarterly figures", ""]
    for (const prompt of prompts) assert.include(describing(prompt), "abstract composition")
    const all = prompts.map((prompt) => pixels(painting(prompt)))
    for (const [at, one] of all.entries()) {
      for (const other of all.slice(at + 1)) assert.isAbove(difference(one, other), 5_000)
    }
  })

  it("with words in quotation marks shows them", () => {
    const [plain, lettered] = [painting("a meadow at noon"), painting("a meadow at noon \"OPEN\"", { seed: 1 })]
    assert.include(compose(lettered).description, "“OPEN”")
    assert.notInclude(compose(painting("a sign that says “castle”")).description, "a castle")
    assert.isAbove(difference(pixels(plain), pixels(lettered)), 30)
  })
})

describe("a picture", () => {
  it("is the same byte for byte when it is painted again", () => {
    for (const prompt of ["a sailing boat on the sea at sunset", "justice", "a city at night in the rain with a cat"]) {
      assert.deepStrictEqual(toPng(painting(prompt)), toPng(painting(prompt)))
    }
  })

  it("is another one with another seed, and with another word", () => {
    const one = pixels(painting("mountains at noon"))
    assert.isAbove(difference(one, pixels(painting("mountains at noon", { seed: 2 }))), 3_000)
    assert.isAbove(difference(one, pixels(painting("tall mountains at noon"))), 3_000)
  })

  it("has the size that was asked for and no hole in it", () => {
    for (const [width, height] of [[64, 64], [64, 400], [400, 64], [300, 200]] as const) {
      for (const prompt of ["flowers by the sea under clouds", "justice"]) {
        const data = pixels(painting(prompt, { width, height }))
        assert.strictEqual(data.length, width * height * 4)
        assert.isTrue(data.every((value, at) => at % 4 !== 3 || value === 255), `${prompt} ${width}x${height}`)
      }
    }
  })

  it("moves, and not by leaps", () => {
    const of = painting("a sailing boat on the sea under clouds with birds")
    const [start, soon, later] = [pixels(of, 0), pixels(of, 0.04), pixels(of, 2)]
    assert.isAbove(difference(start, later), difference(start, soon))
    assert.isAbove(difference(start, later), 100)
  })

  it("is marked in its lower right corner, and nowhere else", () => {
    const [plain, marked] = [pixels(painting("mountains")), pixels(painting("mountains", { watermark: true }))]
    const changed = (from: number, to: number) => difference(plain.subarray(from, to), marked.subarray(from, to))
    const half = plain.length * 0.75
    assert.strictEqual(changed(0, half), 0)
    assert.isAbove(changed(half, plain.length), 100)
  })

  it("holds more where the prompt may be extended, and says what", () => {
    const { additions, description } = compose(painting("a lake with trees", { extend: true }))
    assert.lengthOf(additions, 2)
    for (const name of additions) {
      assert.include(description, name)
      assert.notInclude(describing("a lake with trees"), name)
    }
  })
})

describe("an overlay", () => {
  it("shows what it names on nothing", () => {
    const data = pixels(painting("add birds and a rainbow over the mountains", { overlay: true }))
    assert.deepStrictEqual(overlayElements("add birds and a rainbow over the mountains"), ["a rainbow", "birds"])
    let empty = 0
    for (let at = 3; at < data.length; at += 4) if (data[at] === 0) empty++
    assert.isAbove(empty, data.length / 4 / 2)
    assert.isBelow(empty, data.length / 4 - 100)
  })
})
