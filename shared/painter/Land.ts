/** Ground and water, from the far mountains to the shore. */
import { between, outline } from "./Chance.ts"
import { darker, lighter, mix, veil } from "./Colour.ts"
import { disc, type Element, fade, fillBelow, glow, type Stage } from "./Stage.ts"

const hazeOf = (stage: Stage): string => stage.mood.sky.at(-1) ?? stage.mood.far

const mountains: Element = {
  name: "mountains",
  words: ["mountain", "mountainous", "peak", "alp", "summit", "volcano", "cliff", "ridge", "himalaya", "山"],
  depth: 40,
  kind: "ground",
  companions: ["a forest", "clouds", "birds"],
  paint: (stage) => {
    const { chance, context, height, horizon, mood } = stage
    const tall = Math.min(horizon, height * 0.6)
    for (let ridge = 0; ridge < 3; ridge++) {
      const curve = outline(chance, 3 + ridge * 2, 6)
      // sharp crests: the curve folded about its middle
      const top = (x: number) =>
        horizon + height * 0.03 * ridge - tall * (0.62 - ridge * 0.17) * (1 - Math.abs(curve(x)) * 1.7)
      const body = mix(mood.far, mood.near, ridge * 0.33)
      const summit = horizon - tall * (0.62 - ridge * 0.17)
      fillBelow(
        stage,
        top,
        fade(stage, summit, horizon + height * 0.06 * (ridge + 1), [
          darker(body, 0.12),
          body,
          mix(body, hazeOf(stage), 0.55)
        ])
      )
      if (ridge > 1) continue
      context.save()
      context.beginPath()
      const edge = outline(chance, 24, 3)
      const snow = tall * (mood.season === "winter" ? 0.3 : 0.15)
      const step = Math.max(1, stage.width / 256)
      for (let x = 0; x <= stage.width + step; x += step) context.lineTo(x, top(x / stage.width))
      for (let x = stage.width + step; x >= 0; x -= step) {
        const crest = top(x / stage.width)
        // the higher the crest, the further the snow comes down
        const reach = Math.max(0, snow - (crest - summit) * 0.55)
        context.lineTo(x, crest + reach * (0.75 + 0.6 * edge(x / stage.width)))
      }
      context.closePath()
      context.fillStyle = veil(mix(lighter(body, 0.78), mood.light, 0.35), 0.9)
      context.fill()
      context.restore()
    }
  }
}

const hills: Element = {
  name: "hills",
  words: [
    "hill",
    "valley",
    "meadow",
    "field",
    "grassland",
    "countryside",
    "pasture",
    "landscape",
    "prairie",
    "草原",
    "田"
  ],
  depth: 44,
  kind: "ground",
  companions: ["trees", "flowers", "birds"],
  paint: (stage) => {
    const { chance, height, horizon, mood } = stage
    const rows = 4
    for (let row = 0; row < rows; row++) {
      const near = row / (rows - 1)
      const curve = outline(chance, 2 + row, 2)
      const base = horizon + (height - horizon) * (near * 0.62 - 0.02)
      const swing = height * (0.075 + 0.02 * near)
      const green = mood.season === "winter"
        ? mix("#e9f0f5", mood.far, 0.3 - near * 0.2)
        : mix(mix(mood.foliage[1] ?? mood.near, mood.far, 0.55 - near * 0.5), mood.near, near * 0.25)
      fillBelow(
        stage,
        (x) => base + curve(x) * swing,
        fade(stage, base - swing, base + height * 0.22, [
          lighter(green, 0.16),
          green,
          darker(green, 0.22)
        ])
      )
    }
  }
}

const desert: Element = {
  name: "a desert",
  words: ["desert", "dune", "sahara", "沙漠"],
  depth: 45,
  kind: "ground",
  companions: ["a sun", "mountains"],
  paint: (stage) => {
    const { chance, context, height, horizon, mood, width } = stage
    for (let row = 0; row < 5; row++) {
      const near = row / 4
      const curve = outline(chance, 2 + row, 1)
      const base = horizon + (height - horizon) * near * 0.72
      const swing = height * (0.03 + 0.05 * near)
      const sand = mix(mood.sand, mix("#c9793f", mood.near, 0.25), 0.2 + near * 0.35)
      const top = (x: number) => base + curve(x) * swing
      fillBelow(
        stage,
        top,
        fade(stage, base - swing, base + height * 0.25, [lighter(sand, 0.3), sand, darker(sand, 0.3)])
      )
      context.strokeStyle = veil(lighter(sand, 0.55), 0.7)
      context.lineWidth = Math.max(1, height * 0.002)
      context.beginPath()
      for (let x = 0; x <= width; x += Math.max(1, width / 256)) context.lineTo(x, top(x / width))
      context.stroke()
    }
  }
}

const snowfield: Element = {
  name: "snow",
  words: ["snow", "snowy", "winter", "ice", "icy", "frozen", "arctic", "glacier", "雪", "冬"],
  depth: 46,
  kind: "ground",
  companions: ["snowfall", "trees"],
  paint: (stage) => {
    const { chance, height, horizon, mood } = stage
    for (let row = 0; row < 3; row++) {
      const curve = outline(chance, 2 + row, 2)
      const base = horizon + (height - horizon) * (0.05 + row * 0.28)
      const white = mix(mood.hour === "night" ? "#8fa3c4" : "#f3f7fa", mood.far, 0.3 - row * 0.12)
      fillBelow(
        stage,
        (x) => base + curve(x) * height * 0.04,
        fade(stage, base - height * 0.05, base + height * 0.3, [
          lighter(white, 0.4),
          white,
          mix(white, mood.water[0], 0.35)
        ])
      )
    }
  }
}

/** Where the water ends and the shore begins, as a part of the way from the horizon to the bottom. */
export const shoreOf = (stage: Stage): number => stage.has("a beach") ? 0.55 : stage.has("land") ? 0.6 : 1

const sea: Element = {
  name: "a sea",
  words: [
    "sea",
    "ocean",
    "lake",
    "water",
    "wave",
    "bay",
    "coast",
    "harbor",
    "harbour",
    "seascape",
    "海",
    "湖",
    "水",
    "大海"
  ],
  depth: 50,
  kind: "water",
  companions: ["a sailing boat", "birds", "clouds"],
  paint: (stage) => {
    const { chance, context, height, horizon, light, mood, seconds, unit, width } = stage
    context.fillStyle = fade(stage, horizon, height, mood.water)
    context.fillRect(0, horizon, width, height - horizon)
    const depth = height - horizon
    for (let count = 0; count < 620; count++) {
      const near = chance() ** 1.6
      const y = horizon + depth * near
      const long = (8 + 110 * near) * unit * between(chance, 0.5, 1.5)
      const x = (chance() * (width + long * 2) + seconds * 22 * unit * (0.3 + near)) % (width + long * 2) - long
      const bright = chance() < 0.5
      const colour = bright ? lighter(mood.water[0], 0.35) : darker(mood.water[1], 0.15)
      context.strokeStyle = veil(colour, between(chance, 0.08, 0.3))
      context.lineWidth = Math.max(0.6, (0.8 + 5 * near) * unit)
      context.lineCap = "round"
      context.beginPath()
      context.moveTo(x - long / 2, y)
      context.quadraticCurveTo(x, y - (1 + 7 * near) * unit * Math.sin(seconds * 2 + count), x + long / 2, y)
      context.stroke()
    }
    if (!stage.has("a sun") && !stage.has("a moon")) return
    context.save()
    context.globalCompositeOperation = "lighter"
    for (let count = 0; count < 240; count++) {
      const near = chance()
      const y = horizon + depth * near
      const spread = (16 + 120 * near) * unit
      const x = light.x + (chance() + chance() - 1) * spread + Math.sin(seconds * 2.4 + count) * 4 * unit
      const long = (12 + 46 * near) * unit * between(chance, 0.4, 1.2)
      context.strokeStyle = veil(mood.light, between(chance, 0.12, 0.5) * (1 - near * 0.6))
      context.lineWidth = Math.max(0.6, (1 + 4 * near) * unit)
      context.beginPath()
      context.moveTo(x - long / 2, y)
      context.lineTo(x + long / 2, y)
      context.stroke()
    }
    context.restore()
  }
}

const beach: Element = {
  name: "a beach",
  words: ["beach", "shore", "seashore", "sand", "sandy", "island", "seaside", "海滩", "沙滩", "岛"],
  depth: 54,
  kind: "ground",
  companions: ["palms", "a sea"],
  paint: (stage) => {
    const { chance, context, height, horizon, mood, seconds, unit, width } = stage
    const curve = outline(chance, 2, 2)
    const base = horizon + (height - horizon) * shoreOf(stage)
    const reach = Math.sin(seconds * 0.9) * 6 * unit
    const top = (x: number) => base + curve(x) * height * 0.035 + reach
    fillBelow(stage, (x) => top(x) - 14 * unit, veil("#ffffff", 0.55))
    fillBelow(stage, (x) => top(x) - 4 * unit, darker(mood.sand, 0.22))
    fillBelow(stage, (x) => top(x) + 20 * unit, fade(stage, base, height, [mood.sand, lighter(mood.sand, 0.12)]))
    for (let count = 0; count < 260; count++) {
      const y = base + 40 * unit + chance() * (height - base)
      context.fillStyle = veil(chance() < 0.5 ? darker(mood.sand, 0.3) : lighter(mood.sand, 0.5), 0.35)
      context.fillRect(chance() * width, y, Math.max(0.7, 2 * unit), Math.max(0.7, 1.4 * unit))
    }
  }
}

const river: Element = {
  name: "a river",
  words: ["river", "stream", "creek", "brook", "waterfall", "河", "溪"],
  depth: 56,
  kind: "water",
  companions: ["trees"],
  paint: (stage) => bend(stage, fade(stage, stage.horizon, stage.height, stage.mood.water), 0.02, 0.36, true)
}

const road: Element = {
  name: "a road",
  words: ["road", "path", "street", "highway", "trail", "lane", "路"],
  depth: 57,
  kind: "subject",
  paint: (stage) => {
    const { mood } = stage
    bend(
      stage,
      fade(stage, stage.horizon, stage.height, [mix("#8d8478", mood.far, 0.5), mix("#6d655c", mood.near, 0.3)]),
      0.01,
      0.3,
      false
    )
  }
}

/** A band that winds from the horizon to the viewer, growing wider. */
const bend = (
  { chance, context, height, horizon, mood, seconds, unit, width }: Stage,
  fill: ReturnType<typeof fade>,
  narrow: number,
  wide: number,
  shines: boolean
): void => {
  const start = between(chance, 0.35, 0.65)
  const swing = between(chance, 0.08, 0.16) * (chance() < 0.5 ? -1 : 1)
  const top = horizon + (height - horizon) * 0.03
  const middle = (near: number) => width * (start + swing * Math.sin(near * 7) * near + (0.5 - start) * near)
  const half = (near: number) => width * (narrow + (wide - narrow) * near ** 1.7) / 2
  context.beginPath()
  for (let at = 0; at <= 60; at++) context.lineTo(middle(at / 60) - half(at / 60), top + (height - top) * at / 60)
  for (let at = 60; at >= 0; at--) context.lineTo(middle(at / 60) + half(at / 60), top + (height - top) * at / 60)
  context.closePath()
  context.fillStyle = fill
  context.fill()
  if (!shines) return
  for (let count = 0; count < 120; count++) {
    const near = (chance() + seconds * 0.05) % 1
    const x = middle(near) + between(chance, -0.8, 0.8) * half(near)
    const y = top + (height - top) * near
    context.strokeStyle = veil(lighter(mood.water[0], 0.5), 0.3)
    context.lineWidth = Math.max(0.6, (0.6 + 3 * near) * unit)
    context.beginPath()
    context.moveTo(x, y)
    context.lineTo(x + (6 + 40 * near) * unit, y)
    context.stroke()
  }
}

const fog: Element = {
  name: "fog",
  words: ["fog", "foggy", "mist", "misty", "haze", "hazy", "雾"],
  depth: 85,
  kind: "weather",
  paint: (stage) => {
    const { chance, height, horizon, seconds, unit, width } = stage
    const colour = mix(hazeOf(stage), "#ffffff", 0.35)
    for (let count = 0; count < 26; count++) {
      const radius = between(chance, 160, 420) * unit
      const x = (chance() * (width + radius * 2) + seconds * 14 * unit) % (width + radius * 2) - radius
      const y = horizon + between(chance, -0.14, 0.3) * height
      disc(stage, x, y, radius, glow(stage, x, y, radius, [veil(colour, 0.26), veil(colour, 0)]))
    }
  }
}

export const landElements: ReadonlyArray<Element> = [
  mountains,
  hills,
  desert,
  snowfield,
  sea,
  beach,
  river,
  road,
  fog
]
