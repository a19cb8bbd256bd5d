/** Citations as Gemini's grounding metadata: a list of sources, and the segments of the text that each supports. */
import * as Json from "../../json/Json.ts"
import type { Citation } from "../conversation/ModelEvent.ts"

/**
 * Maximum size of what all segments repeat, in characters. In this dialect they refer to their sources by number, but repeat their text;
 * in the others they repeat the addresses of their sources.
 */
const maxRepeated = 4 * 1024 * 1024

/** Where each byte of a text's UTF-8 is in the text. */
const charactersOf = (text: string): (byte: number) => number => {
  if (Buffer.byteLength(text) === text.length) return (byte) => Math.min(byte, text.length)
  const characters: Array<number> = []
  let at = 0
  for (const character of text) {
    for (let bytes = Buffer.byteLength(character); bytes > 0; bytes--) characters.push(at)
    at += character.length
  }
  return (byte) => characters[byte] ?? text.length
}

/** Where each character of a text is in its UTF-8. */
const bytesOf = (text: string): (at: number) => number => {
  if (Buffer.byteLength(text) === text.length) return (at) => at
  const bytes: Array<number> = []
  let byte = 0
  for (const character of text) {
    for (let index = 0; index < character.length; index++) bytes.push(byte)
    byte += Buffer.byteLength(character)
  }
  return (at) => bytes[at] ?? byte
}

/** A source that supports no segment is cited at the end of the text. Beyond the maximum, each source is cited only once. */
export const fromGrounding = (metadata: unknown, text: string): ReadonlyArray<Citation> => {
  const { groundingChunks, groundingSupports } = Json.fields(metadata)
  const sources = Json.list(groundingChunks).map((chunk) => {
    const { retrievedContext, web } = Json.fields(chunk)
    return Json.fields(web ?? retrievedContext)
  })
  if (sources.length === 0) return []
  const characterAt = charactersOf(text)
  const cited = new Set<unknown>()
  let repeated = 0
  const citationOf = (index: unknown, start: number, end: number): ReadonlyArray<Citation> => {
    const source = sources[Json.count(index) ?? -1] ?? {}
    const url = Json.string(source["uri"])
    const title = Json.string(source["title"]) ?? ""
    if (url === undefined) return []
    if (cited.has(index)) repeated += url.length + title.length
    if (cited.has(index) && repeated > maxRepeated) return []
    cited.add(index)
    return [{ url, title, start, end, quote: "" }]
  }
  const supported = Json.list(groundingSupports).flatMap((support) => {
    const { groundingChunkIndices: indices, segment } = Json.fields(support)
    const { endIndex, startIndex } = Json.fields(segment)
    const start = characterAt(Json.count(startIndex) ?? 0)
    const end = characterAt(Json.count(endIndex) ?? 0)
    return Json.list(indices).flatMap((index) => citationOf(index, start, Math.max(start, end)))
  })
  return [
    ...supported,
    ...sources.flatMap((_, index) => cited.has(index) ? [] : citationOf(index, text.length, text.length))
  ]
}

export const toGrounding = (citations: ReadonlyArray<Citation>, text: string) => {
  const byteAt = bytesOf(text)
  const indices = new Map<string, number>()
  let repeated = 0
  const groundingSupports = citations.map(({ end, start, url }) => {
    const index = indices.get(url) ?? indices.size
    indices.set(url, index)
    const supported = text.slice(start, end)
    repeated += supported.length
    const place = { startIndex: byteAt(start), endIndex: byteAt(end) }
    const segment = repeated > maxRepeated ? place : { ...place, text: supported }
    return { segment, groundingChunkIndices: [index] }
  })
  const titles = new Map(citations.map(({ title, url }) => [url, title]))
  return {
    groundingChunks: [...indices.keys()].map((uri) => ({ web: { uri, title: titles.get(uri) } })),
    groundingSupports
  }
}
