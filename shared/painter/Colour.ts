/** Finds the colours that words name or suggest. */

/** Red, green and blue, 0 to 255 each. */
export type Colour = readonly [red: number, green: number, blue: number]

export const white: Colour = [250, 250, 250]
export const black: Colour = [12, 14, 20]

/** A mixture of two colours. `part`: from 0 for `a` to 1 for `b`. */
export const mix = (a: Colour, b: Colour, part: number): Colour => [
  a[0] + (b[0] - a[0]) * part,
  a[1] + (b[1] - a[1]) * part,
  a[2] + (b[2] - a[2]) * part
]

/** A muted colour of this hue, in degrees. */
export const fromHue = (hue: number): Colour => {
  const channel = (shift: number): number => 128 + 70 * Math.cos((hue - shift) * Math.PI / 180)
  return [channel(0), channel(120), channel(240)]
}

const table = (text: string): ReadonlyMap<string, Colour> =>
  new Map(
    text.trim().split(/\s+/u).map((entry) => {
      const [word = "", hex = ""] = entry.split(":")
      const value = Number.parseInt(hex, 16)
      return [word, [value >> 16, value >> 8 & 255, value & 255]]
    })
  )

/** Names of colours. */
export const named = table(`
  red:d7263d crimson:b3123a orange:f2792b amber:f5a623 gold:e0a526 golden:e0a526 yellow:f4d03f lime:a4d037 green:2e9e4f
  teal:12868a turquoise:30c5bb cyan:23bcd6 blue:2765d9 azure:3f9fe6 navy:1b2a63 indigo:4338a8 violet:7d3fc4 purple:7f31a8
  magenta:cf2aa5 pink:f08fb5 brown:7d5236 beige:d9c7a3 black:101014 white:fafafa gray:8a8d93 grey:8a8d93 silver:bfc4cb
`)

/** Subjects with a colour of their own. */
const suggested = table(`
  night:141c45 midnight:0e1330 moon:2a3566 sunset:f0703a sunrise:f59e6b dawn:f4a58a dusk:6b4a8c evening:e07b52 fire:d9421e
  sun:f7b733 noon:6db7ee sky:6db7ee day:7cc0f0 sea:1f6fa8 ocean:165a92 lake:2f86a8 river:3a8fb0 water:2a7fb5 wave:2478ab
  rain:5f7385 storm:3d4656 cloud:aebccb fog:b6bfc6 snow:e6eef6 ice:bfe0ee winter:cfdde8 mountain:66758c city:4d5566
  forest:2c6b3f meadow:5fa043 grass:5c9e3a tree:3c7a40 garden:4f9a52 spring:86c06a summer:f2c14e autumn:c4662a
  desert:d9a45f sand:dcc08a beach:e3c98f flower:e0679a rose:c8385a lemon:f4d03f
`)

/** The colour that a word names or suggests, in the singular or the plural. */
export const colourOf = (word: string): Colour | undefined => {
  const singular = word.replace(/s$/u, "")
  return named.get(word) ?? suggested.get(word) ?? named.get(singular) ?? suggested.get(singular)
}
