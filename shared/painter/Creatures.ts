/** Who lives in the picture, and what falls from its sky. */
import { between, pick, whole } from "./Chance.ts"
import { darker, lighter, mix, veil } from "./Colour.ts"
import { groundAt } from "./Growth.ts"
import { disc, type Element, fade, shape, type Stage } from "./Stage.ts"

/** A figure that stands out stands large where little else is in the picture. */
const standing = (stage: Stage, share: number) => ({
  size: Math.min(stage.width, stage.height) * share,
  x: between(stage.chance, 0.4, 0.6) * stage.width,
  y: groundAt(stage, 0.62)
})

const ellipse = (
  { context }: Stage,
  fill: string,
  x: number,
  y: number,
  wide: number,
  tall: number,
  turn = 0
): void => {
  context.beginPath()
  context.ellipse(x, y, wide, tall, turn, 0, Math.PI * 2)
  context.fillStyle = fill
  context.fill()
}

const cat: Element = {
  name: "a cat",
  words: ["cat", "kitten", "kitty", "feline", "猫"],
  depth: 78,
  kind: "subject",
  companions: ["butterflies", "flowers"],
  paint: (stage) => {
    const { chance, context, mood, seconds } = stage
    const { size, x, y } = standing(stage, 0.34)
    const natural = pick(chance, ["#c47a3a", "#4a4440", "#8d8a86", "#d9c3a0", "#2f2b2b"])
    const fur = mood.hasColours ? mix(mood.accents[0], "#3b322f", 0.35) : mix(natural, mood.near, 0.12)
    const light = lighter(fur, 0.45)
    ellipse(stage, veil("#000000", 0.22), x, y, size * 0.5, size * 0.06)
    context.strokeStyle = fur
    context.lineCap = "round"
    context.lineWidth = size * 0.09
    context.beginPath()
    context.moveTo(x + size * 0.25, y - size * 0.08)
    context.bezierCurveTo(
      x + size * 0.68,
      y,
      x + size * 0.66,
      y - size * 0.45,
      x + size * (0.5 + 0.05 * Math.sin(seconds * 2)),
      y - size * 0.55
    )
    context.stroke()
    ellipse(stage, fur, x, y - size * 0.34, size * 0.3, size * 0.36)
    ellipse(stage, light, x, y - size * 0.28, size * 0.15, size * 0.25)
    for (const side of [-1, 1]) {
      ellipse(stage, fur, x + side * size * 0.14, y - size * 0.05, size * 0.1, size * 0.06)
      shape(stage, fur, [x + side * size * 0.07, y - size * 0.93], [x + side * size * 0.27, y - size * 1.14], [
        x + side * size * 0.27,
        y - size * 0.78
      ])
      shape(stage, "#e7a4a0", [x + side * size * 0.13, y - size * 0.92], [x + side * size * 0.24, y - size * 1.05], [
        x + side * size * 0.24,
        y - size * 0.84
      ])
    }
    ellipse(stage, fur, x, y - size * 0.78, size * 0.29, size * 0.24)
    for (const side of [-1, 1]) {
      const blink = Math.sin(seconds * 1.1) > 0.985 ? 0.15 : 1
      ellipse(stage, "#d8e36a", x + side * size * 0.115, y - size * 0.81, size * 0.062, size * 0.068 * blink)
      ellipse(stage, "#16130f", x + side * size * 0.115, y - size * 0.81, size * 0.02, size * 0.06 * blink)
      context.strokeStyle = veil("#ffffff", 0.75)
      context.lineWidth = Math.max(0.8, size * 0.008)
      for (const tilt of [-0.05, 0.01, 0.07]) {
        context.beginPath()
        context.moveTo(x + side * size * 0.08, y - size * 0.69)
        context.lineTo(x + side * size * 0.36, y - size * (0.7 - tilt))
        context.stroke()
      }
    }
    ellipse(stage, light, x, y - size * 0.68, size * 0.11, size * 0.07)
    shape(stage, "#d9747a", [x - size * 0.03, y - size * 0.73], [x + size * 0.03, y - size * 0.73], [
      x,
      y - size * 0.69
    ])
  }
}

const robot: Element = {
  name: "a robot",
  words: ["robot", "android", "droid", "cyborg", "机器人"],
  depth: 79,
  kind: "subject",
  paint: (stage) => {
    const { context, mood, seconds } = stage
    const { size, x, y } = standing(stage, 0.36)
    const metal = mix("#c3ccd6", mood.near, 0.15)
    const accent = mood.accents[0]
    const box = (left: number, top: number, wide: number, tall: number, fill: string) => {
      context.beginPath()
      context.roundRect(x + left * size, y + top * size, wide * size, tall * size, size * 0.04)
      context.fillStyle = fade(stage, y + top * size, y + (top + tall) * size, [
        lighter(fill, 0.2),
        fill,
        darker(fill, 0.25)
      ])
      context.fill()
    }
    ellipse(stage, veil("#000000", 0.22), x, y, size * 0.42, size * 0.05)
    for (const side of [-1, 1]) {
      box(side * 0.13 - 0.05, -0.3, 0.1, 0.28, darker(metal, 0.2))
      box(side * 0.13 - 0.09, -0.06, 0.18, 0.07, darker(metal, 0.35))
      box(side * 0.34 - 0.05, -0.7 + side * 0.02 * Math.sin(seconds * 3), 0.1, 0.36, darker(metal, 0.12))
      disc(stage, x + side * size * 0.34, y - size * 0.33, size * 0.065, accent)
    }
    box(-0.28, -0.75, 0.56, 0.48, metal)
    box(-0.17, -0.66, 0.34, 0.2, darker(metal, 0.55))
    for (let light = 0; light < 4; light++) {
      const on = Math.sin(seconds * 5 + light * 1.7) > -0.3
      disc(stage, x + (light - 1.5) * size * 0.08, y - size * 0.56, size * 0.025, on ? accent : darker(accent, 0.6))
    }
    box(-0.05, -0.82, 0.1, 0.09, darker(metal, 0.3))
    box(-0.22, -1.12, 0.44, 0.32, metal)
    for (const side of [-1, 1]) {
      disc(stage, x + side * size * 0.1, y - size * 0.98, size * 0.068, "#12202b")
      disc(stage, x + side * size * 0.1, y - size * 0.98, size * 0.042, lighter(accent, 0.35))
    }
    box(-0.11, -0.88, 0.22, 0.035, "#12202b")
    box(-0.01, -1.24, 0.02, 0.13, darker(metal, 0.3))
    disc(stage, x, y - size * 1.25, size * 0.04, accent)
  }
}

const figure: Element = {
  name: "a walker",
  words: ["person", "man", "woman", "girl", "boy", "child", "hiker", "traveler", "traveller", "people", "人"],
  depth: 77,
  kind: "subject",
  paint: (stage) => {
    const { context, mood, seconds } = stage
    const { size, x, y } = standing(stage, 0.24)
    const coat = mix(mood.accents[0], mood.near, 0.3)
    const stride = Math.sin(seconds * 5) * 0.1 + 0.1
    context.lineCap = "round"
    context.strokeStyle = darker(mood.near, 0.4)
    context.lineWidth = size * 0.085
    for (const side of [-1, 1]) {
      context.beginPath()
      context.moveTo(x, y - size * 0.42)
      context.lineTo(x + side * size * stride, y)
      context.stroke()
    }
    shape(stage, coat, [x - size * 0.11, y - size * 0.84], [x + size * 0.11, y - size * 0.84], [
      x + size * 0.2,
      y - size * 0.32
    ], [x - size * 0.2, y - size * 0.32])
    context.strokeStyle = darker(coat, 0.2)
    context.lineWidth = size * 0.07
    for (const side of [-1, 1]) {
      context.beginPath()
      context.moveTo(x + side * size * 0.1, y - size * 0.79)
      context.lineTo(x + side * size * (0.15 + stride * 0.5), y - size * 0.44)
      context.stroke()
    }
    disc(stage, x, y - size * 0.95, size * 0.1, mix("#d9a77f", mood.near, 0.2))
    shape(stage, darker(coat, 0.45), [x - size * 0.17, y - size * 0.98], [x + size * 0.17, y - size * 0.98], [
      x + size * 0.08,
      y - size * 1.09
    ], [x - size * 0.08, y - size * 1.09])
  }
}

const heart: Element = {
  name: "a heart",
  words: ["heart", "love", "valentine", "心", "爱"],
  depth: 80,
  kind: "subject",
  paint: (stage) => {
    const { chance, context, height, mood, seconds, width } = stage
    const colour = mix(pick(chance, mood.accents), "#e0314f", 0.7)
    const size = Math.min(width, height) * 0.2 * (1 + 0.05 * Math.sin(seconds * 5))
    const [x, y] = [width / 2, height * 0.46]
    context.beginPath()
    context.moveTo(x, y + size * 0.95)
    context.bezierCurveTo(x - size * 1.7, y - size * 0.1, x - size * 0.85, y - size * 1.25, x, y - size * 0.45)
    context.bezierCurveTo(x + size * 0.85, y - size * 1.25, x + size * 1.7, y - size * 0.1, x, y + size * 0.95)
    context.fillStyle = fade(stage, y - size, y + size, [lighter(colour, 0.25), colour, darker(colour, 0.3)])
    context.fill()
    ellipse(stage, veil("#ffffff", 0.35), x - size * 0.5, y - size * 0.45, size * 0.22, size * 0.12, -0.6)
  }
}

const fish: Element = {
  name: "fish",
  words: ["fish", "goldfish", "koi", "dolphin", "whale", "鱼"],
  depth: 53,
  kind: "subject",
  companions: ["a sea"],
  paint: (stage) => {
    const { chance, context, height, horizon, mood, seconds, unit, width } = stage
    for (let at = whole(chance, 5, 8); at > 0; at--) {
      const size = between(chance, 38, 80) * unit
      context.save()
      context.translate(
        between(chance, 0.08, 0.9) * width + seconds * 25 * unit,
        horizon + (height - horizon) * between(chance, 0.3, 0.9)
      )
      if (chance() < 0.5) context.scale(-1, 1)
      const colour = pick(chance, mood.accents)
      const tail = Math.sin(seconds * 6 + at) * size * 0.12
      shape(stage, darker(colour, 0.15), [-size * 0.7, 0], [-size * 1.3, -size * 0.4 + tail], [-size * 1.15, tail], [
        -size * 1.3,
        size * 0.4 + tail
      ])
      ellipse(stage, colour, 0, 0, size, size * 0.42)
      ellipse(stage, veil("#ffffff", 0.3), 0, size * 0.13, size * 0.75, size * 0.22)
      shape(stage, darker(colour, 0.25), [-size * 0.2, -size * 0.34], [size * 0.3, -size * 0.38], [
        -size * 0.15,
        -size * 0.72
      ])
      disc(stage, size * 0.6, -size * 0.09, size * 0.09, "#ffffff")
      disc(stage, size * 0.62, -size * 0.09, size * 0.05, "#101014")
      context.restore()
    }
  }
}

const butterflies: Element = {
  name: "butterflies",
  words: ["butterfly", "moth", "蝴蝶"],
  depth: 82,
  kind: "subject",
  companions: ["flowers"],
  paint: (stage) => {
    const { chance, context, height, mood, seconds, unit, width } = stage
    for (let at = whole(chance, 4, 7); at > 0; at--) {
      const size = between(chance, 22, 46) * unit
      context.save()
      context.translate(
        between(chance, 0.1, 0.9) * width + Math.sin(seconds + at) * 30 * unit,
        between(chance, 0.3, 0.8) * height + Math.sin(seconds * 2.1 + at) * 16 * unit
      )
      context.rotate(between(chance, -0.6, 0.6))
      const colour = pick(chance, mood.accents)
      const open = 0.7 + 0.3 * Math.sin(seconds * 9 + at)
      for (const side of [-1, 1]) {
        ellipse(stage, colour, side * size * 0.48 * open, -size * 0.3, size * 0.5 * open, size * 0.42, side * -0.5)
        ellipse(
          stage,
          darker(colour, 0.2),
          side * size * 0.36 * open,
          size * 0.3,
          size * 0.36 * open,
          size * 0.32,
          side * 0.5
        )
        ellipse(stage, veil("#ffffff", 0.5), side * size * 0.6 * open, -size * 0.34, size * 0.13 * open, size * 0.12)
      }
      ellipse(stage, "#2a2020", 0, 0, size * 0.08, size * 0.5)
      context.restore()
    }
  }
}

const lightning: Element = {
  name: "lightning",
  words: ["lightning", "thunder", "thunderstorm", "闪电"],
  depth: 24,
  kind: "sky",
  companions: ["clouds", "rain"],
  paint: ({ chance, context, horizon, seconds, unit, width }) => {
    if (seconds % 2 > 1) return
    context.save()
    context.lineJoin = "bevel"
    for (let bolt = 0; bolt < 2; bolt++) {
      let x = between(chance, 0.2, 0.8) * width
      const points: Array<readonly [number, number]> = [[x, horizon * 0.12]]
      for (let y = horizon * 0.12; y < horizon; y += horizon * 0.07) {
        points.push([x += between(chance, -45, 45) * unit, y])
      }
      for (
        const [wide, colour] of [[22, veil("#b9c8ff", 0.16)], [9, veil("#d8e0ff", 0.4)], [3.4, "#ffffff"]] as const
      ) {
        context.strokeStyle = colour
        context.lineWidth = Math.max(1, wide * unit)
        context.beginPath()
        for (const [px, py] of points) context.lineTo(px, py)
        context.stroke()
      }
    }
    context.restore()
  }
}

const rain: Element = {
  name: "rain",
  words: ["rain", "rainy", "raining", "storm", "stormy", "shower", "drizzle", "雨", "暴风"],
  depth: 90,
  kind: "weather",
  companions: ["clouds"],
  paint: ({ chance, context, height, seconds, unit, width }) => {
    context.save()
    context.strokeStyle = veil("#e4edf5", 0.42)
    for (let count = 0; count < 520; count++) {
      const near = chance()
      const long = (16 + 38 * near) * unit
      const y = (chance() * (height + long) + seconds * (700 + 600 * near) * unit) % (height + long) - long
      const x = chance() * (width + 80 * unit)
      context.lineWidth = Math.max(0.6, (0.7 + 1.5 * near) * unit)
      context.beginPath()
      context.moveTo(x, y)
      context.lineTo(x - long * 0.24, y + long)
      context.stroke()
    }
    context.restore()
  }
}

const snowfall: Element = {
  name: "snowfall",
  words: ["snowfall", "snowing", "snowflake", "snowstorm", "blizzard", "snowy", "雪"],
  depth: 91,
  kind: "weather",
  paint: (stage) => {
    const { chance, height, seconds, unit, width } = stage
    for (let count = 0; count < 420; count++) {
      const near = chance()
      const y = (chance() * height + seconds * (50 + 90 * near) * unit) % height
      const x = chance() * width + Math.sin(seconds + count) * 12 * unit
      disc(stage, x, y, Math.max(0.6, (1 + 4.5 * near) * unit), veil("#ffffff", 0.45 + 0.5 * near))
    }
  }
}

export const creatureElements: ReadonlyArray<Element> = [
  lightning,
  fish,
  figure,
  cat,
  robot,
  heart,
  butterflies,
  rain,
  snowfall
]
