/** Colours as `#rrggbb`, and what is made of them. */

export type Colour = string

const channels = (colour: Colour): readonly [number, number, number] => {
  const value = Number.parseInt(colour.slice(1), 16)
  return [value >> 16, (value >> 8) & 255, value & 255]
}

const toHex = (channel: number): string => Math.round(Math.min(255, Math.max(0, channel))).toString(16).padStart(2, "0")

/** From `a` (0) to `b` (1). */
export const mix = (a: Colour, b: Colour, part: number): Colour => {
  const [red, green, blue] = channels(a)
  const [otherRed, otherGreen, otherBlue] = channels(b)
  return `#${toHex(red + (otherRed - red) * part)}${toHex(green + (otherGreen - green) * part)}${
    toHex(blue + (otherBlue - blue) * part)
  }`
}

export const lighter = (colour: Colour, part: number): Colour => mix(colour, "#ffffff", part)

export const darker = (colour: Colour, part: number): Colour => mix(colour, "#000000", part)

/** With an opacity from 0 to 1, as a canvas takes it. */
export const veil = (colour: Colour, opacity: number): string => {
  const [red, green, blue] = channels(colour)
  return `rgba(${red},${green},${blue},${opacity.toFixed(3)})`
}

/** Hue in degrees, saturation and lightness from 0 to 1. */
export const fromHue = (hue: number, saturation: number, lightness: number): Colour => {
  const spread = saturation * Math.min(lightness, 1 - lightness)
  const channel = (offset: number): string => {
    const position = (offset + hue / 30) % 12
    return toHex(255 * (lightness - spread * Math.max(-1, Math.min(position - 3, 9 - position, 1))))
  }
  return `#${channel(0)}${channel(8)}${channel(4)}`
}

/** The colours that a prompt or an instruction may name. */
export const named: ReadonlyMap<string, Colour> = new Map([
  ["red", "#d7263d"],
  ["crimson", "#b3123a"],
  ["orange", "#f2792b"],
  ["amber", "#f5a623"],
  ["gold", "#e0a526"],
  ["golden", "#e0a526"],
  ["yellow", "#f4d03f"],
  ["lime", "#a4d037"],
  ["green", "#2e9e4f"],
  ["emerald", "#149c68"],
  ["teal", "#12868a"],
  ["turquoise", "#30c5bb"],
  ["cyan", "#23bcd6"],
  ["blue", "#2765d9"],
  ["azure", "#3f9fe6"],
  ["navy", "#1b2a63"],
  ["indigo", "#4338a8"],
  ["violet", "#7d3fc4"],
  ["purple", "#7f31a8"],
  ["lavender", "#b49be0"],
  ["magenta", "#cf2aa5"],
  ["pink", "#f08fb5"],
  ["brown", "#7d5236"],
  ["beige", "#d9c7a3"],
  ["black", "#101014"],
  ["white", "#fafafa"],
  ["gray", "#8a8d93"],
  ["grey", "#8a8d93"],
  ["silver", "#bfc4cb"]
])
