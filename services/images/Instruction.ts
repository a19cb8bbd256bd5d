/**
 * Reads an instruction such as `make it black and white, then rotate it by 90 degrees and write "Paris" at the top` into a
 * list of operations, in the order of its words.
 */
import { named } from "../../shared/painter/Colour.ts"
import { overlayElements } from "../../shared/painter/Scene.ts"

export type Place = "top" | "middle" | "bottom"
export type Region = "left" | "right" | "top" | "bottom" | "centre"

export type Operation =
  | { readonly kind: "grayscale" | "sepia" | "invert" | "vignette" | "sketch" | "circle" | "rounded" }
  | { readonly kind: "blur"; readonly radius: number }
  | { readonly kind: "sharpen"; readonly strength: number }
  | { readonly kind: "rotate"; readonly degrees: number }
  | { readonly kind: "flip"; readonly axis: "horizontal" | "vertical" }
  | { readonly kind: "scale"; readonly factor: number }
  | { readonly kind: "resize"; readonly width: number; readonly height: number }
  | { readonly kind: "cropTo"; readonly width: number; readonly height: number }
  | { readonly kind: "square" }
  | { readonly kind: "cropPart"; readonly region: Region; readonly share: number }
  | { readonly kind: "brightness" | "contrast" | "saturation"; readonly factor: number }
  | { readonly kind: "hue"; readonly degrees: number }
  | { readonly kind: "tint"; readonly colour: string; readonly name: string; readonly strength: number }
  | { readonly kind: "text"; readonly text: string; readonly place: Place; readonly colour: string }
  | { readonly kind: "border"; readonly pixels: number; readonly colour: string; readonly name: string }
  | { readonly kind: "pixelate"; readonly blocks: number }
  | { readonly kind: "posterize"; readonly colours: number }
  /** Elements of the painter's, over the picture. */
  | { readonly kind: "paintOver"; readonly prompt: string; readonly elements: ReadonlyArray<string> }
  /** The colours of what the painter would paint: what is done where nothing else was understood. */
  | { readonly kind: "grade"; readonly prompt: string }

export type Arrangement = "row" | "column" | "grid" | "blend" | "inset"

/** Characters that are read of an instruction, and of each of its clauses: what says more is no instruction, but a text. */
const readCharacters = 4_000
const clauseCharacters = 400

/** How the pictures of a request that brings several are put together. */
export const arrangementOf = (text: string): Arrangement => {
  const instruction = text.slice(0, readCharacters)
  if (/\b(grid|collage|mosaic of)\b/i.test(instruction)) return "grid"
  if (/\b(blend|overlay|double exposure|merge|mix|fade)\b/i.test(instruction)) return "blend"
  if (/\b(stack|vertical(ly)?|above|below|beneath|column|top of each other)\b/i.test(instruction)) return "column"
  if (/\b(inset|corner|logo|paste|(place|put|insert)\b.*\b(on|in|onto|into|over))\b/i.test(instruction)) return "inset"
  return "row"
}

/** One step of an instruction. */
interface Clause {
  readonly text: string
  readonly quoted: string | undefined
}

const quotation = /["“”«»「」]([^"“”«»「」]*)["“”«»「」]|(?<![\p{L}\p{N}])'([^']*)'(?![\p{L}\p{N}])/gu
const separator = /[,;:!?\n，。；、]|\.(?!\d)|\b(?:then|and|also|afterwards|plus|while)\b|然后|并且|并|再/

const clausesOf = (instruction: string): ReadonlyArray<Clause> => {
  const quotes: Array<string> = []
  const text = instruction.slice(0, readCharacters)
    .replaceAll(quotation, (_match, double: string | undefined, single: string | undefined) => {
      quotes.push(double ?? single ?? "")
      return ` ‹${quotes.length - 1}› `
    })
    .toLowerCase()
    .replaceAll(/black(?:\s*(?:and|&)\s*|-and-|-)white|\bb\s*&\s*w\b/g, "grayscale")
  return text.split(separator).flatMap((clause) => {
    const part = clause.slice(0, clauseCharacters)
    if (part.trim() === "") return []
    const quote = /‹(\d+)›/.exec(part)?.[1]
    return [{
      text: part.replace(/‹\d+›/, "").trim(),
      quoted: quote === undefined ? undefined : quotes[Number(quote)]
    }]
  })
}

/** From 0.35 for `slightly` to 2 for `very`. */
const emphasis = (text: string): number =>
  /\b(slight(ly)?|a (?:little|bit|touch)|subtl[ey]|gentl[ey]|soft(?:ly)?|light(?:ly)?|somewhat)\b|稍/.test(text)
    ? 0.4
    : /\b(very|strong(ly)?|heav(?:y|ily)|extreme(ly)?|a lot|much|dramatic(ally)?|intense(ly)?|completely)\b|非常/.test(
        text
      )
    ? 2
    : 1

const isLess = (text: string): boolean =>
  /\b(less|lower|reduce|decrease|decreasing|down|tone down|mute)\b|降低|减少/.test(text)

/** A share such as 20 for `20%` or `20 percent`. */
const percentIn = (text: string): number | undefined => {
  const found = /(\d+(?:\.\d+)?)\s*(?:%|percent)/.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

const numberIn = (text: string): number | undefined => {
  const found = /(\d+(?:\.\d+)?)/.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}

const sizeIn = (text: string) => {
  const [, width, height] = /(\d{1,5})\s*(?:px)?\s*(?:[x×*]|by)\s*(\d{1,5})/.exec(text) ?? []
  return width === undefined || height === undefined ? undefined : { width: side(width), height: side(height) }
}

const side = (text: string): number => Math.min(4096, Math.max(1, Number(text)))

/** More of something by so many percent, or by as much as the words say. */
const factorIn = (text: string, usual: number): number => {
  const part = (percentIn(text) ?? usual * 100 * emphasis(text)) / 100
  return isLess(text) ? Math.max(0, 1 - Math.min(part, 0.95)) : 1 + Math.min(part, 4)
}

const colourIn = (text: string) => {
  for (const word of text.match(/[a-z]+/g) ?? []) {
    const name = word.replace(/ish$/, "").replace(/^redd$/, "red")
    const colour = named.get(word) ?? named.get(name)
    if (colour !== undefined) return { colour, name: named.has(word) ? word : name }
  }
  const hex = /#[0-9a-f]{6}\b/.exec(text)?.[0]
  return hex === undefined ? undefined : { colour: hex, name: hex }
}

const placeIn = (text: string): Place =>
  /\b(top|above|header|upper)\b/.test(text) ? "top" : /\b(cent(?:er|re)|middle)\b/.test(text) ? "middle" : "bottom"

type Read = (text: string) => ReadonlyArray<Operation>

const rotation: Read = (text) => {
  if (/upside[- ]down/.test(text)) return [{ kind: "rotate", degrees: 180 }]
  const left = /\b(left|counter-?\s?clockwise|anti-?\s?clockwise)\b|逆时针/.test(text)
  const degrees = (numberIn(text) ?? 90) % 360
  return [{ kind: "rotate", degrees: left ? (360 - degrees) % 360 : degrees }]
}

const crop: Read = (text) => {
  const size = sizeIn(text)
  if (size !== undefined) return [{ kind: "cropTo", ...size }]
  if (/\bsquare\b/.test(text)) return [{ kind: "square" }]
  if (/\bcircle|round\b/.test(text)) return [{ kind: "circle" }]
  const region = (["left", "right", "top", "bottom"] as const).find((name) => text.includes(name)) ?? "centre"
  const share = percentIn(text) ??
    (text.includes("third") ? 33.4 : text.includes("quarter") ? 25 : region === "centre" ? 70 : 50)
  return [{ kind: "cropPart", region, share: Math.min(100, Math.max(1, share)) / 100 }]
}

const resizing: Read = (text) => {
  const size = sizeIn(text)
  if (size !== undefined) return [{ kind: "resize", ...size }]
  const percent = percentIn(text)
  if (percent !== undefined) return [{ kind: "scale", factor: percent / 100 }]
  if (/\bhalf\b|smaller|shrink|thumbnail/.test(text)) return [{ kind: "scale", factor: 0.5 }]
  return /\bdouble\b|larger|bigger|enlarge|upscale|twice/.test(text) ? [{ kind: "scale", factor: 2 }] : []
}

const tinting: Read = (text) => {
  const found = colourIn(text)
  return found === undefined ? [] : [{ kind: "tint", ...found, strength: Math.min(0.85, 0.5 * emphasis(text)) }]
}

const framing: Read = (text) => {
  const { colour, name } = colourIn(text) ?? { colour: "#ffffff", name: "white" }
  const pixels = /(\d+)\s*(?:px|pixels?)?/.exec(text)?.[1]
  return [{ kind: "border", pixels: Math.min(500, pixels === undefined ? 0 : Number(pixels)), colour, name }]
}

/** What each word or phrase asks for. Where one phrase holds another, the longer stands first. */
const lexicon: ReadonlyArray<readonly [pattern: RegExp, read: Read]> = [
  [
    /\bgr[ae]y[- ]?scale\b|\bmonochrome\b|\bdesaturate\w*|\bcolou?rless\b|\b(?:make|turn|render|convert)\b.*\bgr[ae]y\b|灰度|黑白/,
    () => [{ kind: "grayscale" }]
  ],
  [/\bsepia\b|\bvintage\b|\bold photo\w*|\bretro\b|怀旧|复古/, () => [{ kind: "sepia" }]],
  [/\bblur\w*|\bdefocus\w*|\bout of focus\b|\bsmooth\w*|模糊/, (text) => [
    { kind: "blur", radius: Math.min(100, Math.max(0.5, numberIn(text) ?? 8 * emphasis(text))) }
  ]],
  [/\bsharp\w*|\bcrisp\w*|\bclearer\b|锐化|清晰/, (text) => [{ kind: "sharpen", strength: 1.5 * emphasis(text) }]],
  [/\brotat\w*|\bupside[- ]down\b|\bturn\b(?=.*(?:degree|°|clockwise|\bleft\b|\bright\b))|旋转/, rotation],
  [/\bmirror\w*|\bflop\b|\bflip\w*|翻转|镜像/, (text) => [
    { kind: "flip", axis: /vertical|upside|top to bottom|垂直/.test(text) ? "vertical" : "horizontal" }
  ]],
  [/\bcrop\w*|\btrim\w*|\bcut out\b|裁剪/, crop],
  [
    /\bresiz\w*|\bscal(?:e|ing)\b|\bupscale\b|\bshrink\b|\benlarge\b|\bhalf (?:the )?size\b|\bdouble (?:the )?size\b|\bthumbnail\b|缩放/,
    resizing
  ],
  [/\bbright\w*|\bexposure\b|\blighten\w*|\blighter\b|\billuminate\w*|变亮|提亮/, (text) => [
    { kind: "brightness", factor: factorIn(text, 0.3) }
  ]],
  [/\bdarken\w*|\bdarker\b|\bdim\w*|变暗/, (text) => [
    { kind: "brightness", factor: Math.max(0.05, 1 - (percentIn(text) ?? 35 * emphasis(text)) / 100) }
  ]],
  [/\bcontrast\w*|对比度/, (text) => [{ kind: "contrast", factor: factorIn(text, 0.35) }]],
  [/\bsaturat\w*|\bvivid\w*|\bvibran\w*|\bcolou?rful\b|\bpop\b|饱和|鲜艳/, (text) => [
    { kind: "saturation", factor: factorIn(text, 0.5) }
  ]],
  [/\bmuted\b|\bpastel\b|\bfaded\b/, () => [{ kind: "saturation", factor: 0.5 }]],
  [/\bhue\b(?=.*\d)/, (text) => [{ kind: "hue", degrees: Math.round(numberIn(text) ?? 90) % 360 }]],
  [/\binvert\w*|\bnegative\b|反色|反相/, () => [{ kind: "invert" }]],
  [/\bsketch\w*|\bpencil\b|\bline ?art\b|\boutlines?\b|\bedges?\b|素描/, () => [{ kind: "sketch" }]],
  [/\bpixel(?:ate|ated|ize|ized|late| art)\w*|\b8-?bit\b|\bmosaic\b|马赛克/, (text) => [
    { kind: "pixelate", blocks: Math.max(4, Math.round(48 / emphasis(text))) }
  ]],
  [/\bposteri[sz]e\w*|\bcartoon\w*|\bpop art\b|\bcomic\b/, () => [{ kind: "posterize", colours: 8 }]],
  [/\bvignette\w*/, () => [{ kind: "vignette" }]],
  [/\bround(?:ed)? corners\b|圆角/, () => [{ kind: "rounded" }]],
  [/\bcircular\b|\binto a circle\b/, () => [{ kind: "circle" }]],
  [/\bborder\w*|\bframe[ds]?\b|\bframing\b|边框/, framing],
  [/\bwarm\w*/, (text) => [{ kind: "tint", colour: "#ff9a3d", name: "warm", strength: 0.3 * emphasis(text) }]],
  [
    /\bcool(?:er)?\b|\bcolder\b|\bbluish\b/,
    (text) => [{ kind: "tint", colour: "#3d7bff", name: "cool", strength: 0.3 * emphasis(text) }]
  ],
  [/\b(?:at|into|to|like|make it|a) (?:night|nighttime|midnight)\b|\bnight ?time\b|夜晚/, () => [
    { kind: "brightness", factor: 0.5 },
    { kind: "tint", colour: "#1b2f8a", name: "night blue", strength: 0.5 }
  ]],
  [
    /\bsunset\b|\bgolden hour\b|日落/,
    () => [{ kind: "tint", colour: "#ff7a2b", name: "sunset orange", strength: 0.45 }]
  ],
  [/\btint\w*|\bcolou?ri[sz]e\w*|\btone[ds]?\b|\bdye[ds]?\b|\bfilter\b|\bshade\b/, tinting],
  [/\b(?:make|turn|paint|colou?r|change|recolou?r|give)\b/, tinting]
]

const negation = /\b(?:don'?t|do not|without|never|no|not|avoid)\b/

/** What a text in quotation marks is asked to be: written onto the picture. */
const writing =
  /\b(?:text|write|writing|caption|title|say(?:s|ing)?|word[s]?|label|overlay|add|put|letter\w*|stamp|watermark|print)\b|文字|写/

const adding = /\b(?:add|put|place|insert|draw|paint|include|with|give)\b|添加|加上/

const usesColour = ({ operations }: { readonly operations: ReadonlyArray<Operation> }): boolean =>
  operations.some(({ kind }) => kind === "tint" || kind === "border" || kind === "grayscale")

/** The operations of one clause: those whose words stand first come first. */
const readClause = ({ quoted, text }: Clause): ReadonlyArray<Operation> => {
  if (quoted !== undefined && (text === "" || writing.test(text))) {
    const { colour } = colourIn(text) ?? { colour: "#ffffff" }
    return quoted.trim() === "" ? [] : [{ kind: "text", text: quoted.trim(), place: placeIn(text), colour }]
  }
  const found: Array<{ readonly at: number; readonly operations: ReadonlyArray<Operation> }> = []
  for (const [pattern, read] of lexicon) {
    const match = pattern.exec(text)
    if (match === null || negation.test(text.slice(0, match.index))) continue
    // what a colour means is said once: in `turn it gray`, `a blue tint` or `a red border` it asks for no tint besides
    const operations = read(text).filter(({ kind }) => kind !== "tint" || !found.some(usesColour))
    if (operations.length > 0) found.push({ at: match.index, operations })
  }
  if (found.length === 0 && adding.test(text) && !negation.test(text)) {
    const elements = overlayElements(text)
    if (elements.length > 0) return [{ kind: "paintOver", prompt: text, elements }]
  }
  return found.toSorted((a, b) => a.at - b.at).flatMap(({ operations }) => operations)
}

export interface Instruction {
  readonly operations: ReadonlyArray<Operation>
  /** The clauses that ask for nothing that this engine can do. */
  readonly notUnderstood: ReadonlyArray<string>
}

/**
 * Reads an instruction. What the negative prompt names is not done: `negativePrompt: "blur"` takes a blur out.
 */
export const readInstruction = (instruction: string, negativePrompt: string): Instruction => {
  const unwanted = new Set(clausesOf(negativePrompt).flatMap(readClause).map(({ kind }) => kind))
  unwanted.delete("paintOver")
  const clauses: Array<{ readonly clause: Clause; readonly operations: ReadonlyArray<Operation> }> = []
  for (const clause of clausesOf(instruction)) {
    const operations = readClause(clause)
    // in `add a balloon and birds` the verb is for both
    const goesOn = operations.length === 0 && clauses.at(-1)?.operations.at(-1)?.kind === "paintOver"
    clauses.push({ clause, operations: goesOn ? readClause({ ...clause, text: `add ${clause.text}` }) : operations })
  }
  return {
    operations: clauses.flatMap(({ operations }) => operations).filter(({ kind }) => !unwanted.has(kind)),
    notUnderstood: clauses.flatMap(({ clause, operations }) =>
      operations.length === 0 && clause.text !== "" ? [clause.text] : []
    )
  }
}

const percent = (factor: number): string => `${Math.round(Math.abs(factor - 1) * 100)}%`

/** What an operation does, in the past tense. */
export const describe = (operation: Operation): string => {
  switch (operation.kind) {
    case "grayscale":
      return "turned to grayscale"
    case "sepia":
      return "toned in sepia"
    case "invert":
      return "inverted the colours"
    case "vignette":
      return "darkened the edges"
    case "sketch":
      return "reduced to its outlines"
    case "circle":
      return "cut to a circle"
    case "rounded":
      return "rounded the corners"
    case "blur":
      return `blurred by ${Number(operation.radius.toFixed(1))} px`
    case "sharpen":
      return "sharpened"
    case "rotate":
      return `rotated by ${operation.degrees} degrees clockwise`
    case "flip":
      return operation.axis === "horizontal" ? "mirrored left to right" : "flipped top to bottom"
    case "scale":
      return `scaled to ${Math.round(operation.factor * 100)}%`
    case "resize":
      return `resized to ${operation.width}x${operation.height}`
    case "cropTo":
      return `cropped to ${operation.width}x${operation.height}`
    case "square":
      return "cropped to a square"
    case "cropPart":
      return `cropped to ${Math.round(operation.share * 100)}% (${operation.region})`
    case "brightness":
      return operation.factor >= 1
        ? `brightened by ${percent(operation.factor)}`
        : `darkened by ${percent(operation.factor)}`
    case "contrast":
      return `${operation.factor >= 1 ? "raised" : "lowered"} the contrast by ${percent(operation.factor)}`
    case "saturation":
      return `${operation.factor >= 1 ? "raised" : "lowered"} the saturation by ${percent(operation.factor)}`
    case "hue":
      return `turned the hue by ${operation.degrees} degrees`
    case "tint":
      return `tinted ${operation.name}`
    case "text":
      return `wrote “${operation.text}” at the ${operation.place}`
    case "border":
      return `added a ${operation.name} border`
    case "pixelate":
      return "pixelated"
    case "posterize":
      return `reduced to ${operation.colours} colours`
    case "paintOver":
      return `painted ${operation.elements.join(", ")} over it`
    case "grade":
      return "shifted the colours towards those of the words"
  }
}
