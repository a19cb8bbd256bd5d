/** Estimates the usage of an answer whose provider reports none, from the texts of the request and the answer. */
import { Effect, Predicate } from "effect"
import { maxDepth } from "../../bounds/JsonBounds.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Json from "../json/Json.ts"
import { turnFor } from "./RequestBody.ts"

/** The size of a token in UTF-8, about right for every script. */
export const bytesPerToken = 4

/** Fields with text that a model reads or writes, in any dialect. Only in the responses dialect `output` and `delta` are texts. */
const textFields: ReadonlySet<string> = new Set([
  ...["prompt", "suffix", "input", "instructions", "system", "query", "documents", "output"],
  ...["content", "text", "refusal", "arguments", "partial_json", "delta"],
  ...["reasoning", "reasoning_content", "thinking"]
])

/** Fields whose value the model reads or writes as JSON. `input` may also be a list of texts or messages. */
const jsonFields: ReadonlySet<string> = new Set(["tools", "args", "input"])

/** The size of the texts in a request, an answer or a piece of one, in bytes. Files do not count. */
export const textBytes = (json: unknown): number => bytesIn(json, "", maxDepth)

const bytesIn = (value: unknown, field: string, depth: number): number => {
  if (typeof value === "string") return textFields.has(field) ? Buffer.byteLength(value) : 0
  if (!Predicate.isObjectOrArray(value) || depth === 0) return 0
  let bytes = 0
  if (Array.isArray(value)) {
    for (const item of value) {
      bytes += bytesIn(item, typeof item === "string" || field === "tools" ? field : "", depth - 1)
    }
    return bytes
  }
  if (jsonFields.has(field)) return Buffer.byteLength(JSON.stringify(value))
  for (const name in value) bytes += bytesIn(Reflect.get(value, name), name, depth - 1)
  return bytes
}

/** Estimates usage from the sizes of the texts, in bytes. */
export const ofSizes = (request: number, answer: number): Usage => {
  const [inputTokens, outputTokens] = [Math.ceil(request / bytesPerToken), Math.ceil(answer / bytesPerToken)]
  return { inputTokens, outputTokens, estimatedTokens: inputTokens + outputTokens }
}

/** Estimates usage from a request's body and the size of the answer's text, in bytes. */
export const ofBody = (body: Uint8Array, answer: number): Effect.Effect<Usage> => {
  const turn = turnFor({ body })
  return Effect.gen(function*() {
    yield* turn
    const text = Json.decodeText(body)
    yield* turn
    const json = Json.parse(text)
    yield* turn
    return ofSizes(textBytes(json), answer)
  })
}
