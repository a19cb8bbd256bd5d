/** Chance that is the same every time: numbers and curves that depend on nothing but a text. */

/** From 0 to 1, the latter excluded. */
export type Chance = () => number

/** cyrb53, cut to 32 bits: spreads texts that differ in one character. */
const hash = (text: string): number => {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    a = Math.imul(a ^ code, 2654435761)
    b = Math.imul(b ^ code, 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  return a >>> 0
}

/** mulberry32, begun at the text's hash. */
export const chanceOf = (text: string): Chance => {
  let state = hash(text)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

export const between = (chance: Chance, low: number, high: number): number => low + (high - low) * chance()

/** A whole number, both ends included. */
export const whole = (chance: Chance, low: number, high: number): number => Math.floor(between(chance, low, high + 1))

export const pick = <A>(chance: Chance, from: readonly [A, ...Array<A>]): A =>
  from[Math.floor(chance() * from.length)] ?? from[0]

/** A smooth curve from -1 to 1 through `knots` heights over 0 to 1, with finer ones added: the outline of a landscape. */
export const outline = (chance: Chance, knots: number, octaves: number): (x: number) => number => {
  const layers = Array.from({ length: octaves }, (_, octave) => {
    const count = knots * 2 ** octave
    return { count, weight: 0.5 ** octave, heights: Array.from({ length: count + 2 }, () => chance() * 2 - 1) }
  })
  const total = layers.reduce((sum, { weight }) => sum + weight, 0)
  return (x) => {
    let height = 0
    for (const { count, heights, weight } of layers) {
      const position = Math.min(Math.max(x, 0), 1) * count
      const at = Math.floor(position)
      const part = position - at
      const smooth = part * part * (3 - 2 * part)
      height += weight * ((heights[at] ?? 0) * (1 - smooth) + (heights[at + 1] ?? 0) * smooth)
    }
    return height / total
  }
}
