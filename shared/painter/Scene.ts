/** Composes a picture from a prompt: what is in it, where the horizon lies, and in which order it is painted. */
import type { SKRSContext2D } from "@napi-rs/canvas"
import { abstractOf } from "./Abstract.ts"
import { between, type Chance, chanceOf } from "./Chance.ts"
import { darker, lighter, mix, veil } from "./Colour.ts"
import { creatureElements } from "./Creatures.ts"
import { growthElements } from "./Growth.ts"
import { landElements, shoreOf } from "./Land.ts"
import { widthOf, write } from "./Lettering.ts"
import { type Mood, moodOf } from "./Mood.ts"
import { paintSky, skyElements } from "./Sky.ts"
import { type Element, fade, fillBelow, glow, type Stage } from "./Stage.ts"
import { drawWatermark } from "./Watermark.ts"
import { holdsAny, readWords } from "./Words.ts"
import { worksElements } from "./Works.ts"

export interface Painting {
  readonly prompt: string
  /** What must not be in it. */
  readonly negativePrompt?: string
  /** In pixels, 16 to 4096. */
  readonly width: number
  readonly height: number
  /** The same seed, prompt and size give the same picture. */
  readonly seed: number
  /** Whether the painter may add what goes well with what was asked for. */
  readonly extend?: boolean
  /** Whether it is marked as made by a machine. */
  readonly watermark?: boolean
  /** Whether only what the prompt names is painted, on nothing, to be laid over another picture. Ground is left out. */
  readonly overlay?: boolean
}

export interface Scene {
  /** What it shows, in words: `a sunset with a sun, mountains and a sea`. */
  readonly description: string
  /** What was added because the prompt could be extended. */
  readonly additions: ReadonlyArray<string>
  /** Paints one moment of it, in seconds; second 0 for a still. Covers the whole canvas, but for an overlay. */
  readonly paint: (context: SKRSContext2D, seconds: number) => void
}

const elements: ReadonlyArray<Element> = [
  ...skyElements,
  ...landElements,
  ...worksElements,
  ...growthElements,
  ...creatureElements
].toSorted((a, b) => a.depth - b.depth)

const elementNamed = new Map(elements.map((element) => [element.name, element]))

const canLieOver = ({ kind }: Element): boolean => kind !== "ground" && kind !== "water"

/** What an overlay of this prompt would show. */
export const overlayElements = (prompt: string): ReadonlyArray<string> => {
  const { wanted } = readWords(prompt, "")
  return elements.filter((element) => canLieOver(element) && holdsAny(wanted, element.words)).map(({ name }) => name)
}

/** What stands on the ground, so that a sea needs a shore. */
const onLand = new Set([
  ...["hills", "a desert", "snow", "a forest", "trees", "palms", "grass", "flowers", "a house", "a castle"],
  ...["a windmill", "a walker", "a cat", "a robot", "a river", "a road"]
])

/** What goes without saying: light in the sky, and a ground to stand on. */
const implied = (named: ReadonlySet<string>, mood: Mood, chance: Chance): ReadonlyArray<string> => {
  const light = named.has("a sun") || named.has("a moon")
  const wet = ["a beach", "a sailing boat", "a lighthouse", "fish"].some((name) => named.has(name))
    && !named.has("a river")
  const covered = wet || [...named].some((name) => ["ground", "water"].includes(elementNamed.get(name)?.kind ?? ""))
  const sky = mood.hour === "night"
    ? ["stars", ...(light ? [] : ["a moon"])]
    : mood.hour === "storm"
    ? ["clouds"]
    : [...(light ? [] : ["a sun"]), ...(chance() < 0.75 ? ["clouds"] : [])]
  return [...sky, ...(wet ? ["a sea"] : []), ...(covered ? [] : ["hills"])]
}

/** Two of the things that go well with what is there. */
const companions = (there: ReadonlySet<string>, chance: Chance): ReadonlyArray<string> => {
  const candidates = [...new Set([...there].flatMap((name) => elementNamed.get(name)?.companions ?? []))]
    .filter((name) => !there.has(name))
  return candidates.map((name) => ({ name, draw: chance() })).toSorted((a, b) => a.draw - b.draw).slice(0, 2)
    .map(({ name }) => name)
}

const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

const hourNames = { day: "a day", dawn: "a dawn", sunset: "a sunset", night: "a night", storm: "a stormy day" }

/** The words in quotation marks, which the picture is to show as they are. */
const quotation = /["“”«»「」]([^"“”«»「」]{1,60})["“”«»「」]/

export const compose = (painting: Painting): Scene => {
  const key = `${painting.seed}\n${painting.prompt}`
  const words = readWords(painting.prompt.replaceAll(new RegExp(quotation, "g"), " "), painting.negativePrompt ?? "")
  const mood = moodOf(words, chanceOf(`mood\n${key}`))
  const isUnwanted = (name: string) => holdsAny(words.unwanted, elementNamed.get(name)?.words ?? [])
  const asked = elements.filter((element) => holdsAny(words.wanted, element.words)).map(({ name }) => name)
  const text = quotation.exec(painting.prompt)?.[1]?.trim()
  const lettering = text === undefined || text === "" ? [] : [`the words “${text}”`]
  const chance = chanceOf(`scene\n${key}`)

  if (painting.overlay === true) {
    const shown = elements.filter((element) =>
      canLieOver(element) && asked.includes(element.name) && !isUnwanted(element.name)
    )
    return {
      description: listed(shown.map(({ name }) => name)),
      additions: [],
      paint: (context, seconds) => {
        const there = new Set(shown.map(({ name }) => name))
        const stage = stageOf(painting, context, mood, chanceOf(`stage\n${key}`), seconds, there)
        for (const element of shown) element.paint({ ...stage, chance: chanceOf(`${element.name}\n${key}`) })
      }
    }
  }

  if (asked.every(isUnwanted) && !mood.isNamed) {
    const abstract = abstractOf(chance, mood.hasColours ? mood.accents : undefined)
    return {
      description: listed([`an abstract composition of ${abstract.name}`, ...lettering]),
      additions: [],
      paint: (context, seconds) => {
        const stage = stageOf(painting, context, mood, chanceOf(`paint\n${key}`), seconds, new Set())
        abstract.paint(stage)
        finish(stage, painting, text)
      }
    }
  }

  const there = new Set(asked.filter((name) => !isUnwanted(name)))
  for (const name of implied(there, mood, chance)) if (!isUnwanted(name)) there.add(name)
  const additions = painting.extend === true ? companions(there, chance).filter((name) => !isUnwanted(name)) : []
  for (const name of additions) there.add(name)
  const shown = elements.filter(({ name }) => there.has(name))
  return {
    description: `${hourNames[mood.hour]} with ${listed([...shown.map(({ name }) => name), ...lettering])}`,
    additions,
    paint: (context, seconds) => {
      const stage = stageOf(painting, context, mood, chanceOf(`stage\n${key}`), seconds, there)
      paintSky(stage)
      let hasShore = false
      for (const element of shown) {
        if (element.depth > 54 && !hasShore) {
          hasShore = true
          paintShore(stage)
        }
        element.paint({ ...stage, chance: chanceOf(`${element.name}\n${key}`) })
      }
      finish(stage, painting, text)
    }
  }
}

const stageOf = (
  { height, width }: Painting,
  context: SKRSContext2D,
  mood: Mood,
  chance: Chance,
  seconds: number,
  there: ReadonlySet<string>
): Stage => {
  const has = (name: string): boolean => name === "land" ? [...there].some((name) => onLand.has(name)) : there.has(name)
  const base = has("flowers") || has("a beach")
    ? 0.5
    : has("a city") || has("mountains") || has("a forest")
    ? 0.6
    : 0.56
  const horizon = height * (base + between(chance, -0.05, 0.06))
  const x = width * between(chance, 0.2, 0.8)
  const high = mood.hour === "day" || mood.hour === "night" || mood.hour === "storm"
  const y = horizon * (high ? between(chance, 0.2, 0.42) : between(chance, 0.68, 0.84))
  return {
    context,
    width,
    height,
    unit: Math.min(width, height) / 1000,
    horizon,
    mood,
    light: { x, y },
    seconds,
    has,
    chance
  }
}

/** Near ground for what stands by the sea where there is no beach. */
const paintShore = (stage: Stage): void => {
  if (!stage.has("a sea") || !stage.has("land") || stage.has("a beach")) return
  const { height, horizon, mood } = stage
  const ground = stage.has("snow")
    ? mix("#eef4f8", mood.far, 0.2)
    : stage.has("a desert")
    ? mood.sand
    : mix(mood.foliage[0], mood.near, 0.3)
  const base = horizon + (height - horizon) * shoreOf(stage)
  const bank = (x: number) => base + Math.sin(x * 5 + 1) * height * 0.018 + Math.sin(x * 17) * height * 0.005
  fillBelow(stage, (x) => bank(x) - height * 0.006, veil("#ffffff", 0.35))
  fillBelow(stage, bank, fade(stage, base, height, [lighter(ground, 0.12), ground, darker(ground, 0.3)]))
}

const finish = (stage: Stage, { height, watermark, width }: Painting, text: string | undefined): void => {
  const { context } = stage
  if (text !== undefined && text !== "") letter(stage, text)
  const reach = Math.hypot(width, height) / 2
  context.fillStyle = glow(stage, width / 2, height / 2, reach, [
    veil("#000000", 0),
    veil("#000000", 0),
    veil("#05060c", 0.3)
  ])
  context.fillRect(0, 0, width, height)
  if (watermark === true) drawWatermark(context, width, height)
}

const letter = ({ context, height, width }: Stage, text: string): void => {
  const size = Math.min(height * 0.11, width * 0.84 / widthOf(text, 1))
  const [x, y] = [(width - widthOf(text, size)) / 2, height * 0.72]
  context.strokeStyle = "rgba(0,0,0,0.55)"
  write(context, text, x + size * 0.06, y + size * 0.08, size)
  context.strokeStyle = "#fdf8ea"
  write(context, text, x, y, size)
}
