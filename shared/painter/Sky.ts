/** What is seen above the horizon. */
import { between, type Chance, pick, whole } from "./Chance.ts"
import { darker, fromHue, lighter, mix, veil } from "./Colour.ts"
import { disc, type Element, fade, glow, shape, type Stage } from "./Stage.ts"

/** The sky itself, of every picture that is a landscape. */
export const paintSky = (stage: Stage): void => {
  stage.context.fillStyle = fade(stage, 0, stage.horizon * 1.02, stage.mood.sky)
  stage.context.fillRect(0, 0, stage.width, stage.height)
}

const stars: Element = {
  name: "stars",
  words: ["star", "starry", "galaxy", "cosmos", "constellation", "milky", "星"],
  depth: 10,
  kind: "sky",
  companions: ["moon", "aurora"],
  paint: (stage) => {
    const { chance, context, horizon, seconds, unit, width } = stage
    // the band of the galaxy, aslant
    for (let count = 0; count < 90; count++) {
      const along = chance()
      const x = along * width + between(chance, -80, 80) * unit
      const y = horizon * (0.85 - along * 0.8) + between(chance, -90, 90) * unit
      const radius = between(chance, 40, 130) * unit
      disc(stage, x, y, radius, glow(stage, x, y, radius, [veil("#cfd8ff", 0.05), veil("#cfd8ff", 0)]))
    }
    for (let count = 0; count < 320; count++) {
      const x = chance() * width
      const y = chance() ** 1.3 * horizon
      const size = between(chance, 0.5, 2.4) * unit
      const phase = chance() * Math.PI * 2
      const shine = 0.55 + 0.4 * Math.sin(phase + seconds * between(chance, 1, 4))
      disc(stage, x, y, Math.max(0.4, size), veil("#ffffff", shine))
      if (size < 2.1 * unit) continue
      context.strokeStyle = veil("#ffffff", shine * 0.5)
      context.lineWidth = Math.max(0.5, unit * 0.8)
      context.beginPath()
      context.moveTo(x - size * 4, y)
      context.lineTo(x + size * 4, y)
      context.moveTo(x, y - size * 4)
      context.lineTo(x, y + size * 4)
      context.stroke()
    }
  }
}

const aurora: Element = {
  name: "an aurora",
  words: ["aurora", "northern", "polar", "borealis", "极光"],
  depth: 12,
  kind: "sky",
  paint: (stage) => {
    const { chance, context, horizon, seconds, width } = stage
    context.save()
    context.globalCompositeOperation = "lighter"
    for (let ribbon = 0; ribbon < 3; ribbon++) {
      const hue = between(chance, 120, 190) + ribbon * 25
      const base = horizon * between(chance, 0.4, 0.7)
      const phase = chance() * 6
      const colour = fromHue(hue, 0.85, 0.55)
      const step = Math.max(1, width / 220)
      for (let x = 0; x < width; x += step) {
        const wave = Math.sin((x / width) * 5 + phase + seconds * 0.4) * 0.6
          + Math.sin((x / width) * 13 + phase * 2 - seconds * 0.6) * 0.25
        const bottom = base + wave * horizon * 0.14
        const tall = horizon * (0.28 + 0.12 * Math.sin((x / width) * 31 + phase))
        context.fillStyle = fade(stage, bottom - tall, bottom, [veil(colour, 0), veil(colour, 0.2), veil(colour, 0)])
        context.fillRect(x, bottom - tall, step + 1, tall)
      }
    }
    context.restore()
  }
}

const halo = (stage: Stage, radius: number, strength: number): void => {
  const { context, light, mood } = stage
  context.save()
  context.globalCompositeOperation = "lighter"
  const around = [veil(mood.light, strength), veil(mood.light, strength * 0.3), veil(mood.light, 0)]
  disc(stage, light.x, light.y, radius, glow(stage, light.x, light.y, radius, around))
  context.restore()
}

const sun: Element = {
  name: "a sun",
  words: ["sun", "sunny", "sunlight", "sunshine", "sunset", "sunrise", "sunlit", "太阳", "阳光", "日落", "日出"],
  depth: 14,
  kind: "sky",
  companions: ["clouds", "birds"],
  paint: (stage) => {
    const { light, mood, unit } = stage
    halo(stage, 440 * unit, mood.hour === "sunset" ? 0.5 : 0.3)
    const radius = (mood.hour === "day" ? 62 : 88) * unit
    const body = [lighter(mood.light, 0.6), mood.light, mix(mood.light, "#ffb25e", mood.hour === "day" ? 0.1 : 0.45)]
    disc(stage, light.x, light.y, radius, fade(stage, light.y - radius, light.y + radius, body))
  }
}

const moon: Element = {
  name: "a moon",
  words: ["moon", "moonlit", "moonlight", "lunar", "月", "月亮"],
  depth: 15,
  kind: "sky",
  companions: ["stars"],
  paint: (stage) => {
    const { chance, context, light, mood, unit } = stage
    halo(stage, 380 * unit, 0.35)
    const radius = 74 * unit
    disc(stage, light.x, light.y, radius, mood.light)
    context.save()
    context.beginPath()
    context.arc(light.x, light.y, radius, 0, Math.PI * 2)
    context.clip()
    for (let count = 0; count < 9; count++) {
      const x = light.x + between(chance, -0.8, 0.8) * radius
      const y = light.y + between(chance, -0.8, 0.8) * radius
      disc(stage, x, y, between(chance, 5, 19) * unit, veil(darker(mood.light, 0.25), 0.35))
    }
    disc(stage, light.x + radius * 0.55, light.y - radius * 0.3, radius * 1.25, veil(mood.sky[0], 0.16))
    context.restore()
  }
}

/** Clouds are heaps of discs on a flat base, lit from above. */
const cloud = (stage: Stage, chance: Chance, x: number, y: number, size: number, opacity: number): void => {
  const { context, mood } = stage
  const lit = mood.hour === "night" ? mix(mood.sky.at(-1) ?? mood.far, "#ffffff", 0.12) : mood.hour === "storm"
    ? "#b9c0c6"
    : mix(mood.light, "#ffffff", 0.6)
  const shade = mix(mood.far, mood.sky.at(-2) ?? mood.far, 0.5)
  context.save()
  context.globalAlpha = opacity
  context.beginPath()
  const puffs = whole(chance, 7, 12)
  for (let puff = 0; puff < puffs; puff++) {
    const along = puff / (puffs - 1) * 2 - 1
    const radius = size * (0.34 - Math.abs(along) * 0.2) * between(chance, 0.8, 1.25)
    const centre = x + along * size
    context.moveTo(centre + radius, y - radius * 0.5)
    context.arc(centre, y - radius * 0.5, radius, 0, Math.PI * 2)
  }
  context.rect(x - size, y - size * 0.08, size * 2, size * 0.16)
  context.fillStyle = fade(stage, y - size * 0.55, y + size * 0.2, [lit, mix(lit, shade, 0.45), veil(shade, 0.05)])
  context.fill()
  context.restore()
}

const clouds: Element = {
  name: "clouds",
  words: ["cloud", "cloudy", "overcast", "cumulus", "云"],
  depth: 20,
  kind: "sky",
  companions: ["birds", "a sun"],
  paint: (stage) => {
    const { chance, horizon, mood, seconds, unit, width } = stage
    const count = mood.hour === "storm" ? 14 : 7
    for (let at = 0; at < count; at++) {
      const near = (at + 1) / count
      const size = (60 + 150 * near) * unit * between(chance, 0.8, 1.3)
      const span = width + size * 4
      const x = (chance() * span + seconds * 18 * unit * near) % span - size * 2
      const y = horizon * (between(chance, 0.12, 0.32) + 0.45 * (1 - near))
      cloud(stage, chance, x, y, size, mood.hour === "night" ? 0.4 : 0.85)
    }
  }
}

const rainbow: Element = {
  name: "a rainbow",
  words: ["rainbow", "彩虹"],
  depth: 22,
  kind: "sky",
  paint: ({ chance, context, height, horizon, unit, width }) => {
    const radius = Math.max(width, height) * between(chance, 0.42, 0.52)
    const x = width * between(chance, 0.3, 0.7)
    const band = 13 * unit
    context.save()
    context.lineWidth = band * 1.15
    for (let at = 0; at < 7; at++) {
      context.strokeStyle = veil(fromHue(at * 45, 0.85, 0.6), 0.42)
      context.beginPath()
      context.arc(x, horizon + radius * 0.2, radius - at * band, Math.PI, Math.PI * 2)
      context.stroke()
    }
    context.restore()
  }
}

const birds: Element = {
  name: "birds",
  words: ["bird", "seagull", "gull", "flock", "crow", "swallow", "鸟"],
  depth: 26,
  kind: "sky",
  paint: ({ chance, context, horizon, mood, seconds, unit, width }) => {
    const middle = { x: between(chance, 0.25, 0.75) * width, y: between(chance, 0.2, 0.45) * horizon }
    context.save()
    context.strokeStyle = mood.hour === "night" ? lighter(mood.far, 0.3) : darker(mood.near, 0.25)
    context.lineCap = "round"
    for (let at = whole(chance, 9, 14); at > 0; at--) {
      const size = between(chance, 12, 27) * unit
      const x = middle.x + between(chance, -230, 230) * unit + seconds * 30 * unit
      const y = middle.y + between(chance, -110, 110) * unit
      const lift = size * (0.45 + 0.35 * Math.sin(seconds * 8 + at))
      context.lineWidth = Math.max(1, size * 0.15)
      context.beginPath()
      context.moveTo(x - size, y - lift * 0.5)
      context.quadraticCurveTo(x - size * 0.4, y - lift, x, y)
      context.quadraticCurveTo(x + size * 0.4, y - lift, x + size, y - lift * 0.5)
      context.stroke()
    }
    context.restore()
  }
}

const balloons: Element = {
  name: "hot-air balloons",
  words: ["balloon", "气球"],
  depth: 28,
  kind: "subject",
  paint: (stage) => {
    const { chance, context, horizon, mood, seconds, unit, width } = stage
    for (let at = 0; at < 4; at++) {
      const size = [105, 70, 48, 36][at]! * unit
      const x = (0.16 + 0.68 * ((at * 0.41 + chance() * 0.25) % 1)) * width
      const y = horizon * between(chance, 0.25, 0.6) + Math.sin(seconds + at) * 8 * unit
      const colours = [pick(chance, mood.accents), pick(chance, mood.accents), "#fbf3e0"]
      context.save()
      context.beginPath()
      context.moveTo(x - size * 0.22, y + size * 1.12)
      context.bezierCurveTo(x - size * 1.3, y + size * 0.1, x - size * 1.05, y - size, x, y - size)
      context.bezierCurveTo(x + size * 1.05, y - size, x + size * 1.3, y + size * 0.1, x + size * 0.22, y + size * 1.12)
      context.closePath()
      context.clip()
      for (let stripe = 0; stripe < 9; stripe++) {
        // gores seem narrower towards the sides
        const edge = (part: number) => x + size * Math.sin((part / 9 - 0.5) * Math.PI)
        context.fillStyle = colours[stripe % colours.length] ?? "#fbf3e0"
        context.fillRect(edge(stripe), y - size, edge(stripe + 1) - edge(stripe) + 1, size * 2.2)
      }
      disc(
        stage,
        x - size * 0.3,
        y - size * 0.35,
        size * 1.9,
        glow(stage, x - size * 0.3, y - size * 0.35, size * 1.9, [veil("#ffffff", 0.25), veil("#000000", 0.28)])
      )
      context.restore()
      shape(stage, "#6b4a2f", [x - size * 0.15, y + size * 1.3], [x + size * 0.15, y + size * 1.3], [
        x + size * 0.12,
        y + size * 1.5
      ], [x - size * 0.12, y + size * 1.5])
      context.strokeStyle = veil("#3a2a1c", 0.8)
      context.lineWidth = Math.max(0.6, unit)
      context.strokeRect(x - size * 0.14, y + size * 1.1, size * 0.28, size * 0.22)
    }
  }
}

const rocket: Element = {
  name: "a rocket",
  words: ["rocket", "spaceship", "spacecraft", "火箭"],
  depth: 29,
  kind: "subject",
  companions: ["stars"],
  paint: (stage) => {
    const { chance, context, horizon, mood, seconds, unit, width } = stage
    context.save()
    context.translate(between(chance, 0.35, 0.65) * width, horizon * 0.5 - seconds * 20 * unit)
    context.rotate(between(chance, -0.35, 0.35))
    const size = 120 * unit
    const accent = mood.accents[0]
    const flame = size * (0.9 + 0.12 * Math.sin(seconds * 30))
    shape(stage, veil("#ff8a2b", 0.9), [-size * 0.2, size], [size * 0.2, size], [0, size + flame])
    shape(stage, "#ffe08a", [-size * 0.1, size], [size * 0.1, size], [0, size + flame * 0.6])
    shape(stage, accent, [-size * 0.28, size * 0.35], [-size * 0.62, size * 1.12], [-size * 0.2, size * 0.95])
    shape(stage, accent, [size * 0.28, size * 0.35], [size * 0.62, size * 1.12], [size * 0.2, size * 0.95])
    context.beginPath()
    context.moveTo(0, -size * 1.25)
    context.bezierCurveTo(size * 0.55, -size * 0.5, size * 0.38, size * 0.6, size * 0.24, size)
    context.lineTo(-size * 0.24, size)
    context.bezierCurveTo(-size * 0.38, size * 0.6, -size * 0.55, -size * 0.5, 0, -size * 1.25)
    const side = context.createLinearGradient(-size * 0.4, 0, size * 0.4, 0)
    side.addColorStop(0, "#ffffff")
    side.addColorStop(1, "#a9b2c2")
    context.fillStyle = side
    context.fill()
    disc(stage, 0, -size * 0.25, size * 0.19, accent)
    disc(stage, 0, -size * 0.25, size * 0.13, "#bfe7ff")
    context.restore()
  }
}

export const skyElements: ReadonlyArray<Element> = [stars, aurora, sun, moon, clouds, rainbow, birds, balloons, rocket]
