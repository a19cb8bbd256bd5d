/**
 * Writes capital letters made of straight strokes, for machines without fonts.
 *
 * A letter has a grid of four by six. Each stroke is a row of points, two digits per point, from the upper left.
 */
import type { Canvas } from "./Canvas.ts"
import { black, white } from "./Colour.ts"

/** Letters and their strokes, which are separated by `~`. */
const strokes = new Map(
  `
  A062046~1434 B06003041423303~334445361606 C4130100105163645 D06002042442606 E40000646~0333 F400006~0333
  G413010010516364543~4323 H0006~4046~0343 I1030~2026~1636 J4045361605 K0006~400346 L000646 M0600234046 N06004640
  O103041453616050110 P06003041423303 Q103041453616050110~2446 R06003041423303~2346 S413010010213334445361605
  T0040~2026 U000516364540 V002640 W0016233640 X0046~4006 Y002340~2326 Z00400646 0103041453616050110~4105 1112026~1636
  201103041420646 301103041423313~334445361605 436300444 54000033344453616 64130100105163645443303 7004016
  8103041423313020110~3344453616050413 94313020110304145361605 .2526 ,2517 !2024~2526 ?01103041422324~2526 -1333 _0646
  :2122~2425 ;2122~2517 '2022 "1012~3032 (30121436 )10323416 /4006 +2125~0343 =0242~0444 *2125~0244~4204
  #1016~3036~0242~0444 &4612~122110~1020~3112~0405~162644 %4006~0010110100~3545463635 @34321214344442301001~05163646
`.trim().split(/\s+/u).map((entry) => [entry.charAt(0), entry.slice(1).split("~")])
)

/** The advance of a letter and the width of the pen, as shares of a letter's height. */
const advance = 5.6 / 6
const pen = 0.13

/** The part of a text that can be written: without accents, and without words that have letters outside the table. */
export const writable = (text: string): string =>
  text.toUpperCase().normalize("NFKD").replace(/\p{M}/gu, "").replace(/[‘’]/gu, "'").split(/\s+/u)
    .filter((word) => word !== "" && Array.from(word).every((letter) => strokes.has(letter))).join(" ")

/** The width of a text of this height, in pixels. */
export const widthOf = (text: string, height: number): number => Math.max(0, text.length * advance - 0.27) * height

/** Writes a line of `writable` text in white with its upper left corner at `x`, `y`, all in pixels, outlined in black. */
export const write = (canvas: Canvas, text: string, x: number, y: number, height: number): void => {
  const radius = Math.max(0.5, height * pen / 2)
  for (const [width, ink] of [[radius * 2, black], [radius, white]] as const) {
    for (const [at, letter] of Array.from(text).entries()) {
      const left = x + at * advance * height
      for (const stroke of strokes.get(letter) ?? []) {
        for (let point = 0; point + 3 < stroke.length; point += 2) {
          const [x0, y0, x1, y1] = Array.from(stroke.slice(point, point + 4), (digit) => Number(digit) * height / 6)
          canvas.stroke(left + x0!, y + y0!, left + x1!, y + y1!, width, ink)
        }
      }
    }
  }
}

/** The lines of a text, each of at most this many letters, except for longer words. */
export const wrap = (text: string, letters: number): ReadonlyArray<string> =>
  text.split(" ").reduce<Array<string>>((lines, word) => {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim()
    return lines.length > 0 && longer.length <= letters ? [...lines.slice(0, -1), longer] : [...lines, word]
  }, [])
