/** The changes that the built-in engine can make to a picture, and the words of an instruction that ask for them. */
import type { Matrix3x3, Sharp } from "sharp"
import type { Size } from "../../shared/contract/operations/ImageGenerations.ts"
import { named } from "../../shared/painter/Colour.ts"
import { longestSide } from "./Pixels.ts"

/** One change. */
interface Step {
  readonly operation: string
  /** The change in the past tense. */
  readonly said: string
  /** `size` is that of the picture before the change. */
  readonly apply: (picture: Sharp, size: Size) => Sharp
}

/** Reads a clause in lower case; `undefined` if it lacks what the operation needs. */
type Read = (clause: string) => Omit<Step, "operation"> | undefined

const clamp = (pixels: number): number => Math.min(longestSide, Math.max(1, Math.round(pixels)))

/** The strength of a change, from 0.4 for `slightly` to 2 for `very`. */
const emphasis = (clause: string): number =>
  /\b(?:slightly|a (?:little|bit)|softly|gently)\b/.test(clause) ? 0.4 : /\b(?:very|much|a lot)\b/.test(clause) ? 2 : 1

const numberIn = (clause: string, unit = ""): number | undefined => {
  const digits = new RegExp(`(\\d{1,6}(?:\\.\\d{1,6})?)${unit}`).exec(clause)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

const percentIn = (clause: string): number | undefined => numberIn(clause, " ?(?:%|percent)")

const sizeIn = (clause: string): Size | undefined => {
  const [, width, height] = /(\d{1,5}) ?(?:px)? ?(?:[x×*]|by) ?(\d{1,5})/.exec(clause) ?? []
  return width === undefined ? undefined : { width: clamp(Number(width)), height: clamp(Number(height)) }
}

/** Weights of the channels in grey. Sharp's own `grayscale` leaves a single channel. */
const luma: [number, number, number] = [0.299, 0.587, 0.114]
const gray: Matrix3x3 = [luma, luma, luma]

const rotate: Read = (clause) => {
  const isLeft = /\bleft\b|counter-?\s?clockwise|anti-?\s?clockwise/.test(clause)
  const wanted = clause.includes("upside") ? 180 : (numberIn(clause) ?? 90) % 360
  const degrees = isLeft ? (360 - wanted) % 360 : wanted
  return {
    said: `rotated by ${degrees} degrees clockwise`,
    apply: (picture) => picture.rotate(degrees, { background: { r: 0, g: 0, b: 0, alpha: 0 } })
  }
}

const crop: Read = (clause) => {
  const side = /\b(left|right|top|bottom)\b/.exec(clause)?.[1]
  const share = (percentIn(clause) ?? (side === undefined ? 70 : 50)) / 100
  return {
    said: `cropped${side === undefined ? "" : ` to the ${side}`}`,
    apply: (picture, { height, width }) => {
      const shorter = Math.min(width, height)
      const box = sizeIn(clause) ?? (clause.includes("square") ? { width: shorter, height: shorter } : {
        width: side === "top" || side === "bottom" ? width : clamp(width * share),
        height: side === "left" || side === "right" ? height : clamp(height * share)
      })
      const [restX, restY] = [Math.max(0, width - box.width), Math.max(0, height - box.height)]
      const left = side === "left" ? 0 : side === "right" ? restX : Math.floor(restX / 2)
      const top = side === "top" ? 0 : side === "bottom" ? restY : Math.floor(restY / 2)
      return picture.extract({ left, top, width: width - restX, height: height - restY })
    }
  }
}

const resize: Read = (clause) => {
  const wanted = sizeIn(clause)
  const usual = /\b(?:half|shrink)\b/.test(clause) ? 50 : /\b(?:double|twice|enlarge)\b/.test(clause) ? 200 : undefined
  const percent = percentIn(clause) ?? usual
  if (wanted === undefined && percent === undefined) return undefined
  const scale = (side: number): number => clamp(side * (percent ?? 100) / 100)
  return {
    said: wanted === undefined ? `scaled to ${percent}%` : `resized to ${wanted.width}x${wanted.height}`,
    apply: (picture, { height, width }) =>
      picture.resize(wanted?.width ?? scale(width), wanted?.height ?? scale(height), { fit: "fill" })
  }
}

const brighten: Read = (clause) => {
  const isLess = /\b(?:less|lower|reduce|decrease|dark\w*|dim\w*)\b/.test(clause)
  const part = (percentIn(clause) ?? 30 * emphasis(clause)) / 100
  const factor = isLess ? Math.max(0.05, 1 - part) : 1 + Math.min(part, 4)
  return {
    said: `${isLess ? "darkened" : "brightened"} by ${Math.round(Math.abs(factor - 1) * 100)}%`,
    apply: (picture) => picture.linear([factor, factor, factor, 1], [0, 0, 0, 0])
  }
}

const tint: Read = (clause) => {
  const name = clause.match(/[a-z]+/g)?.find((word) => named.has(word) && !/^gr[ae]y$/.test(word))
  const colour = named.get(name ?? "")
  if (colour === undefined) return undefined
  const part = Math.min(0.85, 0.5 * emphasis(clause))
  const offsets = [...colour.map((channel) => channel * part), 0]
  return { said: `tinted ${name}`, apply: (picture) => picture.linear([1 - part, 1 - part, 1 - part, 1], offsets) }
}

const operations: ReadonlyArray<readonly [name: string, words: RegExp, read: Read]> = [
  ["grayscale", /\bgr[ae]y(?:[- ]?scale)?\b|\bmonochrome\b|\bblack(?: (?:and|&) |-and-)white/, () => ({
    said: "turned to grayscale",
    apply: (picture) => picture.recomb(gray)
  })],
  ["invert", /\binvert\w*|\bnegative\b/, () => ({
    said: "inverted the colours",
    apply: (picture) => picture.negate({ alpha: false })
  })],
  ["blur", /\bblur\w*/, (clause) => {
    const radius = Math.min(100, Math.max(0.5, numberIn(clause) ?? 8 * emphasis(clause)))
    return { said: `blurred by ${radius} px`, apply: (picture) => picture.blur(radius) }
  }],
  ["rotate", /\brotat\w*|\bupside[- ]down\b|\bturn\b(?=.*(?:degree|°|clockwise))/, rotate],
  ["flip", /\bmirror\w*|\bflip\w*/, (clause) =>
    /vertical|upside|top to bottom/.test(clause)
      ? { said: "flipped top to bottom", apply: (picture) => picture.flip() }
      : { said: "mirrored left to right", apply: (picture) => picture.flop() }],
  ["crop", /\bcrop\w*/, crop],
  [
    "resize",
    /\bresiz\w*|\bscal(?:e|ing)\b|\bshrink\b|\benlarge\b|\b(?:half|double|twice) (?:the |its )?size\b/,
    resize
  ],
  ["brighten or darken", /\bbright\w*|\blighte[nr]\w*|\bdark\w*|\bdim\w*/, brighten],
  ["tint with a colour", /\btint\w*|\bcolou?r\w*|\b(?:make|turn|paint|change)\b/, tint]
]

/** The operations, for error messages. */
export const abilities = operations.map(([name]) => name).join(", ")

/** Maximum characters read of an instruction and of a clause: longer ones describe a picture rather than a change. */
const readCharacters = 4_000
const clauseCharacters = 400

/** Clauses end at punctuation and at words that join them. */
const separator = /[,;:!?\n]|\.(?!\d)|\b(?:then|and(?! white)|also|but)\b/

const negation = /\b(?:don'?t|do not|without|never|no|not|avoid)\b/

/** The changes of one clause, in the order of its words. */
const readClause = (clause: string): ReadonlyArray<Step> =>
  operations.flatMap(([operation, words, read]) => {
    const at = words.exec(clause)?.index ?? -1
    const step = at === -1 || negation.test(clause.slice(0, at)) ? undefined : read(clause)
    return step === undefined ? [] : [{ at, step: { operation, ...step } }]
  }).toSorted((a, b) => a.at - b.at).map(({ step }) => step)

/** Matches changes to a part of the picture's content, which need a model: by the verb, or by the object of an operation. */
const contentVerb =
  /^(?:(?:please|now|can you|could you) )*(?:add|remove|erase|delete|replace|insert|put|draw|place|swap|give|hide)\b/
const partial = new RegExp(
  "\\b(?:the|his|her|their|my) (?!(?:whole|entire|full|original|image|picture|photo\\w*|canvas|scene|colou?rs?|tones?|" +
    "brightness|size|width|height|left|right|top|bottom|upper|lower|middle|cent(?:er|re)|sides?|half|edges?|rest)\\b)"
)

/** An instruction's changes in order, its clauses that name no change, and its clauses that need a model. */
export const readInstruction = (instruction: string) => {
  const clauses = instruction.slice(0, readCharacters).toLowerCase().replaceAll(/\s+/g, " ").split(separator)
    .map((clause) => clause.trim().slice(0, clauseCharacters)).filter((clause) => clause !== "")
    .map((clause) => ({ clause, steps: readClause(clause) }))
  return {
    steps: clauses.flatMap(({ steps }) => steps),
    beyond: clauses.flatMap(({ clause, steps }) =>
      (steps.length === 0 ? contentVerb : partial).test(clause) ? [clause] : []
    ),
    unclear: clauses.flatMap(({ clause, steps }) => steps.length > 0 || negation.test(clause) ? [] : [clause])
  }
}
