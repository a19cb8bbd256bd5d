/** What is painted where a prompt names nothing that the painter knows: forms and colours that follow from its letters. */
import { between, outline, pick, whole } from "./Chance.ts"
import { fromHue, mix, veil } from "./Colour.ts"
import { disc, fade, fillBelow, glow, type Stage } from "./Stage.ts"

type Form = (stage: Stage, colours: readonly [string, ...Array<string>]) => void

/** Lines that follow a field of directions. */
const currents: Form = ({ chance, context, height, seconds, unit, width }, colours) => {
  const turns = [between(chance, 1, 3), between(chance, 1, 3), chance() * 6, chance() * 6] as const
  context.lineCap = "round"
  for (let count = 0; count < 700; count++) {
    let [x, y] = [chance() * width, chance() * height]
    context.strokeStyle = veil(pick(chance, colours), between(chance, 0.15, 0.65))
    context.lineWidth = Math.max(0.7, between(chance, 1, 8) * unit)
    context.beginPath()
    context.moveTo(x, y)
    for (let step = 0; step < 26; step++) {
      const angle = Math.sin(x / width * turns[0] * 4 + turns[2] + seconds * 0.2) * 2
        + Math.cos(y / height * turns[1] * 4 + turns[3]) * 2
      x += Math.cos(angle) * 9 * unit
      y += Math.sin(angle) * 9 * unit
      context.lineTo(x, y)
    }
    context.stroke()
  }
}

const orbs: Form = (stage, colours) => {
  const { chance, height, seconds, unit, width } = stage
  for (let count = 0; count < 46; count++) {
    const radius = between(chance, 30, 230) * unit
    const x = chance() * width + Math.sin(seconds * 0.6 + count) * 20 * unit
    const y = chance() * height + Math.cos(seconds * 0.5 + count) * 20 * unit
    const colour = pick(chance, colours)
    disc(
      stage,
      x,
      y,
      radius,
      glow(stage, x - radius * 0.3, y - radius * 0.3, radius * 1.3, [
        veil(mix(colour, "#ffffff", 0.35), 0.8),
        veil(colour, 0.4),
        veil(colour, 0.06)
      ])
    )
  }
}

const bands: Form = (stage, colours) => {
  const { chance, height, seconds } = stage
  const rows = 11
  for (let row = 0; row < rows; row++) {
    const curve = outline(chance, whole(chance, 2, 5), 3)
    const base = height * (row + 0.4) / rows
    const colour = mix(pick(chance, colours), colours[row % colours.length] ?? colours[0], 0.5)
    fillBelow(
      stage,
      (x) => base + curve(x) * height * 0.11 + Math.sin(x * 6 + seconds + row) * height * 0.008,
      fade(stage, base - height * 0.1, base + height * 0.3, [colour, mix(colour, "#101018", 0.35)])
    )
  }
}

const arcs: Form = ({ chance, context, height, seconds, unit, width }, colours) => {
  for (let group = 0; group < 7; group++) {
    const [x, y] = [chance() * width, chance() * height]
    const rings = whole(chance, 4, 9)
    for (let ring = 0; ring < rings; ring++) {
      const begin = chance() * Math.PI * 2 + seconds * between(chance, -0.4, 0.4)
      context.strokeStyle = veil(pick(chance, colours), 0.85)
      context.lineWidth = between(chance, 5, 22) * unit
      context.beginPath()
      context.arc(x, y, (28 + ring * 34) * unit, begin, begin + between(chance, 1.2, 5.4))
      context.stroke()
    }
  }
}

const tiles: Form = ({ chance, context, height, unit, width }, colours) => {
  const side = between(chance, 90, 150) * unit
  for (let y = 0; y < height; y += side) {
    for (let x = 0; x < width; x += side) {
      context.fillStyle = pick(chance, colours)
      context.fillRect(x, y, side + 1, side + 1)
      context.fillStyle = pick(chance, colours)
      const corner = whole(chance, 0, 3)
      const [cx, cy] = [x + (corner % 2) * side, y + (corner > 1 ? side : 0)]
      context.beginPath()
      context.moveTo(cx, cy)
      context.arc(cx, cy, side, [0, 0.5, -0.5, 1][corner]! * Math.PI, [0.5, 1, 0, 1.5][corner]! * Math.PI)
      context.closePath()
      context.fill()
    }
  }
}

type Named = readonly [name: string, form: Form]
const forms: readonly [Named, ...Array<Named>] = [
  ["flowing lines", currents],
  ["glowing orbs", orbs],
  ["layered waves", bands],
  ["turning arcs", arcs],
  ["curved tiles", tiles]
]

/** Paints one of the forms and says which. */
export const abstractOf = (chance: () => number, accents: readonly [string, ...Array<string>] | undefined) => {
  const [name, form] = pick(chance, forms)
  const hue = chance() * 360
  const spread = pick(chance, [28, 45, 120, 150])
  const colours: readonly [string, ...Array<string>] = accents ?? [
    fromHue(hue, 0.7, 0.55),
    fromHue(hue + spread, 0.72, 0.6),
    fromHue(hue + spread * 2, 0.65, 0.5),
    fromHue(hue + 180, 0.55, 0.62),
    "#f6f0e2"
  ]
  return {
    name,
    paint: (stage: Stage): void => {
      stage.context.fillStyle = fade(stage, 0, stage.height, [
        mix(colours[0], "#0d1020", 0.72),
        mix(colours.at(-2) ?? colours[0], "#0d1020", 0.55)
      ])
      stage.context.fillRect(0, 0, stage.width, stage.height)
      form(stage, colours)
    }
  }
}
