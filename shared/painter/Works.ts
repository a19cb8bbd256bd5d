/** What people build. */
import { between, pick, whole } from "./Chance.ts"
import { darker, lighter, mix, veil } from "./Colour.ts"
import { groundAt } from "./Growth.ts"
import { disc, type Element, fade, glow, shape, type Stage } from "./Stage.ts"

/** Whether windows are lit. */
const isDark = ({ mood }: Stage): boolean => mood.hour === "night" || mood.hour === "sunset" || mood.hour === "storm"

const lamp = "#ffd98a"

const rectangle = (
  { context }: Stage,
  fill: Parameters<typeof shape>[1],
  x: number,
  y: number,
  w: number,
  h: number
) => {
  context.fillStyle = fill
  context.fillRect(x, y, w, h)
}

const city: Element = {
  name: "a city",
  words: [
    "city",
    "skyline",
    "skyscraper",
    "downtown",
    "metropolis",
    "town",
    "urban",
    "cityscape",
    "building",
    "城市",
    "城"
  ],
  depth: 48,
  kind: "ground",
  companions: ["clouds", "birds", "a river"],
  paint: (stage) => {
    const { chance, height, horizon, mood, seconds, unit, width } = stage
    const floor = stage.has("a sea") ? horizon + 4 * unit : horizon + (height - horizon) * 0.45
    for (let row = 0; row < 3; row++) {
      const near = row / 2
      const bottom = horizon + 2 * unit + (floor - horizon) * near
      const wall = mix(mix(mood.far, mood.sky.at(-2) ?? mood.far, 0.3), darker(mood.near, 0.1), 0.15 + near * 0.8)
      for (let x = -40 * unit; x < width;) {
        const wide = between(chance, 42, 105) * unit * (0.7 + near * 0.5)
        const tall = (70 + 300 * chance() ** 2.2 + (chance() < 0.12 ? 170 : 0)) * unit * (1.15 - near * 0.25)
        const top = bottom - tall
        rectangle(
          stage,
          fade(stage, top, bottom, [lighter(wall, 0.06), mix(wall, mood.sky.at(-1) ?? wall, 0.18)]),
          x,
          top,
          wide,
          height
        )
        if (chance() < 0.3) rectangle(stage, wall, x + wide * 0.46, top - 46 * unit, Math.max(1, 5 * unit), 46 * unit)
        else if (chance() < 0.35) rectangle(stage, wall, x + wide * 0.22, top - 20 * unit, wide * 0.56, 22 * unit)
        const [column, floorHeight] = [13 * unit, 17 * unit]
        for (let windowY = top + floorHeight * 0.7; windowY < bottom - floorHeight; windowY += floorHeight) {
          for (let windowX = x + column * 0.6; windowX < x + wide - column * 0.8; windowX += column) {
            const lit = chance() < (isDark(stage) ? 0.42 : 0.55)
            const flicker = Math.sin(seconds * 0.7 + windowX * 13 + windowY * 7) > 0.97
            if (!lit || flicker) continue
            rectangle(
              stage,
              veil(isDark(stage) ? lamp : lighter(wall, 0.45), 0.35 + 0.5 * near),
              windowX,
              windowY,
              Math.max(0.8, column * 0.5),
              Math.max(0.8, floorHeight * 0.5)
            )
          }
        }
        x += wide + between(chance, -6, 16) * unit
      }
    }
    if (!stage.has("a sea")) {
      rectangle(
        stage,
        fade(stage, floor, height, [darker(mood.near, 0.05), darker(mood.near, 0.4)]),
        0,
        floor,
        width,
        height
      )
    }
  }
}

const house: Element = {
  name: "a house",
  words: ["house", "cottage", "cabin", "home", "hut", "barn", "farm", "village", "房", "房子", "村"],
  depth: 62,
  kind: "subject",
  companions: ["trees", "flowers"],
  paint: (stage) => {
    const { chance, context, mood, seconds, unit, width } = stage
    const size = 150 * unit
    const x = between(chance, 0.22, 0.62) * width
    const y = groundAt(stage, 0.18)
    const dark = isDark(stage)
    const wall = mix("#f0e3cd", mood.near, dark ? 0.55 : 0.08)
    const roof = mix(mood.accents[0], "#7a3b2c", 0.6)
    for (let puff = 0; puff < 6; puff++) {
      const rise = (puff / 6 + seconds * 0.08) % 1
      disc(
        stage,
        x + size * (1.2 + rise * 0.4),
        y - size * (1.75 + rise * 0.9),
        size * (0.07 + rise * 0.14),
        veil("#f2f2f2", 0.34 * (1 - rise))
      )
    }
    rectangle(stage, mix("#8b5a44", mood.near, 0.3), x + size * 1.12, y - size * 1.7, size * 0.18, size * 0.6)
    rectangle(
      stage,
      fade(stage, y - size * 0.85, y, [wall, darker(wall, 0.16)]),
      x,
      y - size * 0.85,
      size * 1.6,
      size * 0.85
    )
    shape(stage, roof, [x - size * 0.16, y - size * 0.82], [x + size * 0.3, y - size * 1.5], [
      x + size * 1.3,
      y - size * 1.5
    ], [x + size * 1.76, y - size * 0.82])
    shape(stage, veil("#000000", 0.16), [x - size * 0.16, y - size * 0.82], [x + size * 1.76, y - size * 0.82], [
      x + size * 1.72,
      y - size * 0.88
    ], [x - size * 0.12, y - size * 0.88])
    rectangle(stage, darker(roof, 0.3), x + size * 0.66, y - size * 0.52, size * 0.27, size * 0.52)
    for (const at of [0.2, 1.12]) {
      const [left, top, side] = [x + size * at, y - size * 0.6, size * 0.29]
      if (dark) {
        disc(
          stage,
          left + side / 2,
          top + side / 2,
          size * 0.6,
          glow(stage, left + side / 2, top + side / 2, size * 0.6, [veil(lamp, 0.5), veil(lamp, 0)])
        )
      }
      rectangle(stage, dark ? lamp : "#a9cfe0", left, top, side, side)
      context.strokeStyle = darker(wall, 0.45)
      context.lineWidth = Math.max(0.8, size * 0.022)
      context.strokeRect(left, top, side, side)
      context.strokeRect(left + side / 2, top, 0, side)
    }
  }
}

const castle: Element = {
  name: "a castle",
  words: ["castle", "palace", "fortress", "kingdom", "城堡", "宫"],
  depth: 58,
  kind: "subject",
  companions: ["mountains", "birds"],
  paint: (stage) => {
    const { chance, mood, seconds, unit, width } = stage
    const size = 300 * unit
    const middle = between(chance, 0.35, 0.65) * width
    const y = groundAt(stage, 0.12)
    const stone = mix("#b9b2a8", mood.near, isDark(stage) ? 0.55 : 0.15)
    const roof = mix(mood.accents[0], "#3d4f7c", 0.45)
    const tower = (x: number, wide: number, tall: number) => {
      rectangle(
        stage,
        fade(stage, y - tall, y, [lighter(stone, 0.1), darker(stone, 0.2)]),
        x - wide / 2,
        y - tall,
        wide,
        tall
      )
      shape(stage, roof, [x - wide * 0.66, y - tall], [x + wide * 0.66, y - tall], [x, y - tall - wide * 1.5])
      shape(stage, darker(roof, 0.25), [x, y - tall], [x + wide * 0.66, y - tall], [x, y - tall - wide * 1.5])
      const [pole, wave] = [y - tall - wide * 1.5, Math.sin(seconds * 4 + x) * wide * 0.06]
      shape(stage, mood.accents.at(-1) ?? mood.accents[0], [x, pole - wide * 0.4], [
        x + wide * 0.55,
        pole - wide * 0.28 + wave
      ], [x, pole - wide * 0.12])
      rectangle(
        stage,
        darker(stone, 0.4),
        x - Math.max(0.5, wide * 0.02),
        pole - wide * 0.42,
        Math.max(1, wide * 0.04),
        wide * 0.5
      )
      for (const at of [0.25, 0.5]) {
        rectangle(
          stage,
          isDark(stage) ? lamp : darker(stone, 0.55),
          x - wide * 0.08,
          y - tall + tall * at,
          wide * 0.16,
          wide * 0.3
        )
      }
    }
    tower(middle, size * 0.24, size * 1.15)
    tower(middle - size * 0.3, size * 0.17, size * 0.85)
    tower(middle + size * 0.3, size * 0.17, size * 0.92)
    rectangle(
      stage,
      fade(stage, y - size * 0.5, y, [stone, darker(stone, 0.28)]),
      middle - size * 0.5,
      y - size * 0.5,
      size,
      size * 0.5
    )
    for (let merlon = 0; merlon < 11; merlon += 2) {
      rectangle(stage, stone, middle - size * 0.5 + size / 11 * merlon, y - size * 0.56, size / 11, size * 0.08)
    }
    tower(middle - size * 0.5, size * 0.2, size * 0.68)
    tower(middle + size * 0.5, size * 0.2, size * 0.68)
    rectangle(stage, darker(stone, 0.62), middle - size * 0.09, y - size * 0.2, size * 0.18, size * 0.2)
    disc(stage, middle, y - size * 0.2, size * 0.09, darker(stone, 0.62))
  }
}

const lighthouse: Element = {
  name: "a lighthouse",
  words: ["lighthouse", "beacon", "灯塔"],
  depth: 61,
  kind: "subject",
  companions: ["a sea", "birds"],
  paint: (stage) => {
    const { chance, context, mood, seconds, unit, width } = stage
    const size = 340 * unit
    const x = width * (chance() < 0.5 ? between(chance, 0.14, 0.28) : between(chance, 0.72, 0.86))
    const y = stage.has("a sea") && !stage.has("land") && !stage.has("a beach")
      ? stage.horizon + 60 * unit
      : groundAt(stage, 0.1)
    const top = y - size
    const half = (part: number) => size * (0.105 - 0.045 * part)
    if (isDark(stage)) {
      const angle = Math.sin(seconds * 0.8) * 0.3 + (x < width / 2 ? -0.12 : Math.PI + 0.12)
      context.save()
      context.globalCompositeOperation = "lighter"
      context.translate(x, top)
      context.rotate(angle)
      const beam = context.createLinearGradient(0, 0, size * 2.6, 0)
      beam.addColorStop(0, veil(lamp, 0.65))
      beam.addColorStop(1, veil(lamp, 0))
      shape(stage, beam, [0, -size * 0.02], [size * 2.6, -size * 0.3], [size * 2.6, size * 0.3], [0, size * 0.02])
      context.restore()
    }
    const rock = mix("#6a625b", mood.near, 0.35)
    const foot = Array.from({ length: 9 }, (_, at): readonly [number, number] => [
      x + (at / 4 - 1) * size * 0.42,
      y + size * (0.1 - (at === 0 || at === 8 ? 0 : between(chance, 0.08, 0.16)))
    ])
    shape(stage, rock, ...foot)
    shape(stage, veil("#000000", 0.25), ...foot.slice(4), [x, y + size * 0.1])
    for (let band = 0; band < 6; band++) {
      const [low, high] = [band / 6, (band + 1) / 6]
      const colour = mix(band % 2 === 0 ? "#f6f1e7" : mood.accents[0], mood.near, isDark(stage) ? 0.35 : 0)
      shape(stage, colour, [x - half(low), y - size * low], [x + half(low), y - size * low], [
        x + half(high),
        y - size * high
      ], [x - half(high), y - size * high])
    }
    shape(stage, veil("#000000", 0.2), [x + half(0) * 0.2, y], [x + half(0), y], [x + half(1), top], [
      x + half(1) * 0.2,
      top
    ])
    rectangle(stage, "#3a3f4a", x - size * 0.085, top - size * 0.012, size * 0.17, size * 0.024)
    rectangle(
      stage,
      isDark(stage) ? "#fff3c0" : "#cfe3ea",
      x - size * 0.045,
      top - size * 0.095,
      size * 0.09,
      size * 0.085
    )
    shape(stage, mood.accents[0], [x - size * 0.075, top - size * 0.095], [x + size * 0.075, top - size * 0.095], [
      x,
      top - size * 0.18
    ])
  }
}

const boat: Element = {
  name: "a sailing boat",
  words: ["boat", "sailboat", "ship", "sail", "sailing", "yacht", "船", "帆"],
  depth: 52,
  kind: "subject",
  companions: ["a sea"],
  paint: (stage) => {
    const { chance, context, height, horizon, mood, seconds, unit, width } = stage
    const reach = stage.has("land") || stage.has("a beach") ? 0.22 : 0.36
    const size = 120 * unit
    context.save()
    context.translate(between(chance, 0.25, 0.7) * width + seconds * 12 * unit, horizon + (height - horizon) * reach)
    context.rotate(Math.sin(seconds * 1.3) * 0.04)
    for (let ripple = 0; ripple < 7; ripple++) {
      rectangle(
        stage,
        veil(mood.accents[0], 0.16),
        -size * (0.75 - ripple * 0.07),
        size * (0.3 + ripple * 0.09),
        size * (1.5 - ripple * 0.16),
        Math.max(1, size * 0.03)
      )
    }
    const hull = mix(mood.accents[0], "#5b3a2a", 0.35)
    shape(stage, hull, [-size * 0.85, 0], [size * 0.9, -size * 0.04], [size * 0.55, size * 0.28], [
      -size * 0.6,
      size * 0.28
    ])
    shape(stage, lighter(hull, 0.5), [-size * 0.85, 0], [size * 0.9, -size * 0.04], [size * 0.85, size * 0.04], [
      -size * 0.8,
      size * 0.07
    ])
    rectangle(stage, "#4a3425", -size * 0.03, -size * 1.75, Math.max(1, size * 0.05), size * 1.75)
    const cloth = mix("#fdf8ec", mood.near, isDark(stage) ? 0.3 : 0)
    shape(stage, cloth, [-size * 0.08, -size * 1.7], [-size * 0.08, -size * 0.12], [-size * 0.78, -size * 0.12])
    shape(
      stage,
      mix(cloth, mood.accents.at(-2) ?? cloth, 0.4),
      [size * 0.07, -size * 1.5],
      [size * 0.07, -size * 0.12],
      [size * 0.72, -size * 0.12]
    )
    context.restore()
  }
}

const windmill: Element = {
  name: "a windmill",
  words: ["windmill", "mill", "turbine", "风车"],
  depth: 63,
  kind: "subject",
  companions: ["hills", "flowers"],
  paint: (stage) => {
    const { chance, context, mood, seconds, unit, width } = stage
    const size = 260 * unit
    const x = between(chance, 0.25, 0.75) * width
    const y = groundAt(stage, 0.12)
    const body = mix("#e8ddca", mood.near, isDark(stage) ? 0.5 : 0.06)
    shape(stage, fade(stage, y - size, y, [body, darker(body, 0.2)]), [x - size * 0.22, y], [x + size * 0.22, y], [
      x + size * 0.13,
      y - size
    ], [x - size * 0.13, y - size])
    shape(stage, mix(mood.accents[0], "#5a3a30", 0.5), [x - size * 0.17, y - size], [x + size * 0.17, y - size], [
      x,
      y - size * 1.24
    ])
    rectangle(stage, darker(body, 0.6), x - size * 0.06, y - size * 0.22, size * 0.12, size * 0.22)
    context.save()
    context.translate(x, y - size)
    context.rotate(0.5 + seconds * 0.8)
    for (let blade = 0; blade < 4; blade++) {
      context.rotate(Math.PI / 2)
      rectangle(stage, "#5b4636", -size * 0.012, 0, size * 0.024, size * 0.82)
      rectangle(stage, veil("#fbf5e6", 0.85), size * 0.012, size * 0.16, size * 0.13, size * 0.64)
    }
    context.restore()
    disc(stage, x, y - size, size * 0.035, "#3f3026")
  }
}

const lanterns: Element = {
  name: "lanterns",
  words: ["lantern", "lamp", "candle", "festival", "灯", "灯笼"],
  depth: 76,
  kind: "subject",
  paint: (stage) => {
    const { chance, context, height, horizon, mood, seconds, unit, width } = stage
    for (let at = whole(chance, 10, 16); at > 0; at--) {
      const size = between(chance, 14, 34) * unit
      const x = chance() * width
      const y = between(chance, 0.1, 0.95) * Math.min(horizon * 1.1, height) - seconds * 10 * unit +
        Math.sin(seconds + at) * 5 * unit
      context.save()
      context.globalCompositeOperation = "lighter"
      disc(
        stage,
        x,
        y,
        size * 3.4,
        glow(stage, x, y, size * 3.4, [veil(lamp, 0.55), veil("#ff9d4d", 0.15), veil("#ff9d4d", 0)])
      )
      context.restore()
      const paper = pick(chance, ["#ffb25c", "#ff8a5c", mood.accents[0]])
      context.beginPath()
      context.ellipse(x, y, size * 0.75, size, 0, 0, Math.PI * 2)
      context.fillStyle = fade(stage, y - size, y + size, [paper, "#ffe6ad", paper])
      context.fill()
      rectangle(stage, "#5a2c1c", x - size * 0.32, y - size * 1.08, size * 0.64, size * 0.16)
      rectangle(stage, "#5a2c1c", x - size * 0.32, y + size * 0.92, size * 0.64, size * 0.16)
    }
  }
}

export const worksElements: ReadonlyArray<Element> = [city, house, castle, lighthouse, boat, windmill, lanterns]
