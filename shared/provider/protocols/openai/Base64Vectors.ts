/**
 * Encodes vectors in base64 if the client asked for that and the server ignored it, as LM Studio, older Ollamas and many
 * others do: the client would decode the numbers as base64 and get nonsense.
 *
 * Reads only the few bytes before each vector and leaves every other byte unchanged. Text within a JSON string cannot look like a
 * member, because its quotes are escaped.
 */
import { skipSpace } from "../../../bounds/JsonBytes.ts"
import { toBase64 } from "../../dialects/embeddings/EmbeddingForm.ts"
import * as Json from "../../json/Json.ts"

const name = Buffer.from("\"embedding\"")
const colon = 0x3a
const opening = 0x5b
const closing = 0x5d

/** A size that the text of no vector reaches, in bytes. */
const maxVectorBytes = 1024 * 1024

/** The range of the list that is the value of the member whose name ends at `from`. `open` if more bytes are needed to tell. */
const vectorAt = (bytes: Buffer, from: number): readonly [start: number, end: number] | "open" | undefined => {
  const after = skipSpace(bytes, from)
  if (after === bytes.length) return "open"
  if (bytes[after] !== colon) return undefined
  const start = skipSpace(bytes, after + 1)
  if (start === bytes.length) return "open"
  if (bytes[start] !== opening) return undefined
  const end = bytes.indexOf(closing, start)
  if (end !== -1) return [start, end + 1]
  return bytes.length - start > maxVectorBytes ? undefined : "open"
}

/** The index from which the last bytes may be the beginning of the name; the length of the bytes if there is none. */
const partOfName = (bytes: Buffer, from: number): number => {
  let at = Math.max(from, bytes.length - name.length + 1)
  while (at < bytes.length && !name.subarray(0, bytes.length - at).equals(bytes.subarray(at))) at++
  return Math.min(at, bytes.length)
}

const isVector = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every((item) => typeof item === "number")

/** Rewrites one answer, piece by piece. Keeps bytes that may be part of a vector until the next piece. */
export const rewrite = (): (piece: Uint8Array) => Uint8Array => {
  let kept: Uint8Array = new Uint8Array(0)
  return (piece) => {
    const bytes = kept.length === 0
      ? Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
      : Buffer.concat([kept, piece])
    const pieces: Array<Uint8Array> = []
    let copied = 0
    let at = 0
    for (;;) {
      const found = bytes.indexOf(name, at)
      const vector = found === -1 ? undefined : vectorAt(bytes, found + name.length)
      if (found === -1 || vector === "open") {
        const until = found === -1 ? partOfName(bytes, at) : found
        const rest = bytes.subarray(copied, until)
        kept = bytes.subarray(until)
        return pieces.length === 0 ? rest : Buffer.concat([...pieces, rest])
      }
      at = found + name.length
      if (vector === undefined) continue
      const [start, end] = vector
      const numbers = Json.parse(bytes.toString("latin1", start, end))
      if (!isVector(numbers)) continue
      pieces.push(bytes.subarray(copied, start), Buffer.from(toBase64(numbers)))
      copied = at = end
    }
  }
}
