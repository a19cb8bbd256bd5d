/**
 * Letters made of straight strokes, for machines without fonts and for marks that must look the same on every one.
 *
 * A letter stands on a grid of four by six. Each stroke is a row of points, two digits to a point, from the upper left.
 * Lower case is written as upper case.
 */
import type { SKRSContext2D } from "@napi-rs/canvas"

const strokes: Readonly<Record<string, string>> = {
  A: "062046 1434",
  B: "06003041423303 334445361606",
  C: "4130100105163645",
  D: "06002042442606",
  E: "40000646 0333",
  F: "400006 0333",
  G: "413010010516364543 4323",
  H: "0006 4046 0343",
  I: "1030 2026 1636",
  J: "4045361605",
  K: "0006 400346",
  L: "000646",
  M: "0600234046",
  N: "06004640",
  O: "103041453616050110",
  P: "06003041423303",
  Q: "103041453616050110 2446",
  R: "06003041423303 2346",
  S: "413010010213334445361605",
  T: "0040 2026",
  U: "000516364540",
  V: "002640",
  W: "0016233640",
  X: "0046 4006",
  Y: "002340 2326",
  Z: "00400646",
  0: "103041453616050110 4105",
  1: "112026 1636",
  2: "01103041420646",
  3: "01103041423313 334445361605",
  4: "36300444",
  5: "4000033344453616",
  6: "4130100105163645443303",
  7: "004016",
  8: "103041423313020110 3344453616050413",
  9: "4313020110304145361605",
  ".": "2526",
  ",": "2517",
  "!": "2024 2526",
  "?": "01103041422324 2526",
  "-": "1333",
  "_": "0646",
  ":": "2122 2425",
  ";": "2122 2517",
  "'": "2022",
  "\"": "1012 3032",
  "(": "30121436",
  ")": "10323416",
  "/": "4006",
  "+": "2125 0343",
  "=": "0242 0444",
  "*": "2125 0244 4204",
  "#": "1016 3036 0242 0444",
  "&": "4612 122110 1020 3112 0405 162644",
  "%": "4006 0010110100 3545463635",
  "@": "34321214344442301001 05163646",
  " ": ""
}

/** What a letter that is not in the table looks like. */
const unknown = "0040460600"

/** The advance of a letter in parts of its height, and the share of the height that the pen is wide. */
const advance = 5.6 / 6
const pen = 0.13

/** How wide a text of this height is, in pixels. */
export const widthOf = (text: string, height: number): number =>
  Math.max(0, Array.from(text).length * advance - 0.27) * height

/** Writes a line in the context's stroke colour, with its upper left corner at `x`, `y`. All in pixels. */
export const write = (context: SKRSContext2D, text: string, x: number, y: number, height: number): void => {
  context.save()
  context.lineCap = "round"
  context.lineJoin = "round"
  context.lineWidth = Math.max(1, height * pen)
  const cell = height / 6
  Array.from(text.toUpperCase()).forEach((letter, at) => {
    const left = x + at * advance * height
    for (const stroke of (strokes[letter] ?? unknown).split(" ")) {
      context.beginPath()
      for (let point = 0; point + 1 < stroke.length; point += 2) {
        context.lineTo(left + Number(stroke[point]) * cell, y + Number(stroke[point + 1]) * cell)
      }
      context.stroke()
    }
  })
  context.restore()
}
