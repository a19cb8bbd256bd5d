/** What grows. */
import { between, type Chance, pick, whole } from "./Chance.ts"
import { type Colour, darker, lighter, mix, veil } from "./Colour.ts"
import { shoreOf } from "./Land.ts"
import { disc, type Element, shape, type Stage } from "./Stage.ts"

/** Where the near ground is, from its far edge (0) to the bottom of the picture (1), in pixels. */
const groundAt = (stage: Stage, near: number): number => {
  const shore = stage.has("a sea") ? shoreOf(stage) : 0
  const from = Math.min(0.86, shore === 1 ? 0.86 : shore + 0.06)
  const top = stage.horizon + (stage.height - stage.horizon) * from
  return top + (stage.height - top) * near
}

const pine = (stage: Stage, x: number, y: number, size: number, colour: Colour): void => {
  const snowy = stage.mood.season === "winter"
  shape(stage, darker(colour, 0.5), [x - size * 0.05, y], [x + size * 0.05, y], [x, y - size * 0.5])
  for (let tier = 0; tier < 5; tier++) {
    const bottom = y - size * (0.12 + tier * 0.17)
    const half = size * (0.3 - tier * 0.052)
    const tip: readonly [number, number] = [x, bottom - size * 0.32]
    shape(stage, colour, [x - half, bottom], [x + half, bottom], tip)
    shape(stage, darker(colour, 0.25), [x + half * 0.15, bottom], [x + half, bottom], tip)
    if (snowy) {
      shape(stage, veil("#ffffff", 0.75), [x - half * 0.45, bottom - size * 0.16], [
        x + half * 0.2,
        bottom - size * 0.17
      ], tip)
    }
  }
}

const leafy = (stage: Stage, chance: Chance, x: number, y: number, size: number, colour: Colour): void => {
  shape(stage, mix("#5b4331", stage.mood.near, 0.3), [x - size * 0.06, y], [x + size * 0.06, y], [
    x + size * 0.025,
    y - size * 0.6
  ], [x - size * 0.025, y - size * 0.6])
  for (const [shade, rise] of [[darker(colour, 0.28), 0], [colour, 0.05], [lighter(colour, 0.16), 0.11]] as const) {
    for (let puff = 0; puff < 9; puff++) {
      const angle = chance() * Math.PI * 2
      const away = Math.sqrt(chance()) * size * 0.27
      disc(
        stage,
        x + Math.cos(angle) * away,
        y - size * (0.66 + rise) + Math.sin(angle) * away * 0.75,
        size * between(chance, 0.09, 0.16) * (1 - rise * 2),
        shade
      )
    }
  }
}

const forest: Element = {
  name: "a forest",
  words: ["forest", "wood", "woodland", "jungle", "pine", "fir", "spruce", "taiga", "森林", "林", "松"],
  depth: 60,
  kind: "ground",
  companions: ["fog", "birds", "a river"],
  paint: (stage) => {
    const { chance, height, mood, unit, width } = stage
    const top = stage.has("a sea") ? groundAt(stage, 0) : stage.horizon + (height - stage.horizon) * 0.12
    for (let row = 0; row < 4; row++) {
      const near = row / 3
      const y = top + (height * 1.02 - top) * near * 0.85
      const colour = mix(mood.far, mix(mood.foliage[0], mood.near, 0.35), 0.3 + near * 0.7)
      const size = (120 + 210 * near) * unit
      const gap = size * 0.3
      stage.context.fillStyle = darker(colour, 0.15)
      stage.context.fillRect(0, y - size * 0.06, width, height)
      for (let x = -gap; x < width + gap; x += gap * between(chance, 0.7, 1.4)) {
        pine(
          stage,
          x,
          y + between(chance, -0.03, 0.08) * size,
          size * between(chance, 0.65, 1.25),
          mix(colour, darker(colour, 0.4), chance() * 0.5)
        )
      }
    }
  }
}

const trees: Element = {
  name: "trees",
  words: ["tree", "oak", "birch", "maple", "orchard", "grove", "park", "树"],
  depth: 64,
  kind: "subject",
  companions: ["birds", "grass"],
  paint: (stage) => {
    const { chance, mood, unit, width } = stage
    const places = Array.from({ length: whole(chance, 4, 6) }, () => ({ near: chance() * 0.5, x: chance() }))
    for (const { near, x } of places.toSorted((a, b) => a.near - b.near)) {
      leafy(stage, chance, x * width, groundAt(stage, near), (210 + 260 * near) * unit, pick(chance, mood.foliage))
    }
  }
}

const palms: Element = {
  name: "palms",
  words: ["palm", "tropical", "coconut", "椰"],
  depth: 66,
  kind: "subject",
  paint: (stage) => {
    const { chance, context, mood, seconds, unit, width } = stage
    for (let at = 0; at < 3; at++) {
      const side = at === 1 ? between(chance, 0.8, 0.94) : between(chance, 0.05, 0.24)
      const x = side * width
      const y = groundAt(stage, between(chance, 0.2, 0.5))
      const size = between(chance, 330, 460) * unit
      const lean = (side < 0.5 ? 1 : -1) * size * between(chance, 0.1, 0.26)
      const [tipX, tipY] = [x + lean, y - size]
      context.strokeStyle = mix("#7a5a3c", mood.near, 0.35)
      context.lineCap = "round"
      context.lineWidth = size * 0.045
      context.beginPath()
      context.moveTo(x, y)
      context.quadraticCurveTo(x + lean * 0.1, y - size * 0.6, tipX, tipY)
      context.stroke()
      for (let leaf = 0; leaf < 9; leaf++) {
        const angle = Math.PI * (0.95 + leaf / 8 * 1.1) + Math.sin(seconds * 1.4 + leaf) * 0.04
        const long = size * between(chance, 0.36, 0.48)
        const [endX, endY] = [tipX + Math.cos(angle) * long, tipY + Math.sin(angle) * long * 0.7 + long * 0.42]
        context.beginPath()
        context.moveTo(tipX, tipY)
        context.quadraticCurveTo(tipX + Math.cos(angle) * long * 0.6, tipY + Math.sin(angle) * long * 0.75, endX, endY)
        context.quadraticCurveTo(tipX + Math.cos(angle) * long * 0.45, tipY + Math.sin(angle) * long * 0.35, tipX, tipY)
        context.fillStyle = mix(mood.foliage[leaf % 2] ?? mood.near, mood.near, 0.25)
        context.fill()
      }
    }
  }
}

const grass: Element = {
  name: "grass",
  words: ["grass", "grassy", "lawn", "reed", "草"],
  depth: 70,
  kind: "subject",
  companions: ["flowers"],
  paint: (stage) => {
    const { chance, context, height, mood, seconds, unit, width } = stage
    for (let count = 0; count < 900; count++) {
      const near = Math.sqrt(count / 900)
      const x = chance() * width
      const y = groundAt(stage, near) + 6 * unit
      const tall = (22 + 60 * near) * unit * between(chance, 0.6, 1.3)
      const bow = between(chance, -0.4, 0.4) * tall + Math.sin(seconds * 2 + x / width * 9) * tall * 0.12
      context.strokeStyle = mix(pick(chance, mood.foliage), mood.near, 0.35 * chance())
      context.lineWidth = Math.max(0.7, (1 + 2.4 * near) * unit)
      context.beginPath()
      context.moveTo(x, Math.min(y, height + tall * 0.3))
      context.quadraticCurveTo(x, y - tall * 0.6, x + bow, y - tall)
      context.stroke()
    }
  }
}

const flowers: Element = {
  name: "flowers",
  words: ["flower", "floral", "rose", "tulip", "daisy", "poppy", "sunflower", "lavender", "garden", "blossom", "bloom"]
    .concat(["bouquet", "wildflower", "花", "玫瑰"]),
  depth: 74,
  kind: "subject",
  companions: ["butterflies", "grass"],
  paint: (stage) => {
    const { chance, context, mood, seconds, unit, width } = stage
    const count = 130
    for (let at = 0; at < count; at++) {
      const near = (at / count) ** 0.8
      const size = (7 + 27 * near) * unit * between(chance, 0.75, 1.3)
      const x = chance() * width + Math.sin(seconds * 1.6 + at) * size * 0.15
      const y = groundAt(stage, near * 0.95) - size * 1.2
      const colour = pick(chance, mood.accents)
      context.strokeStyle = mix(mood.foliage[0], mood.near, 0.3)
      context.lineWidth = Math.max(0.8, size * 0.14)
      context.beginPath()
      context.moveTo(x, y)
      context.quadraticCurveTo(x + size * 0.2, y + size * 1.2, x, y + size * 2.6)
      context.stroke()
      const petals = whole(chance, 5, 8)
      const turn = chance() * Math.PI
      for (let petal = 0; petal < petals; petal++) {
        const angle = turn + petal / petals * Math.PI * 2
        context.beginPath()
        context.ellipse(
          x + Math.cos(angle) * size * 0.55,
          y + Math.sin(angle) * size * 0.55,
          size * 0.5,
          size * 0.28,
          angle,
          0,
          Math.PI * 2
        )
        context.fillStyle = petal % 2 === 0 ? colour : lighter(colour, 0.18)
        context.fill()
      }
      disc(stage, x, y, size * 0.27, mix("#f7c948", mood.near, mood.hour === "night" ? 0.4 : 0.05))
    }
  }
}

export const growthElements: ReadonlyArray<Element> = [forest, trees, palms, grass, flowers]
export { groundAt }
