/**
 * What a provider's answer says of itself beside what it says: which model it was, and why it ended. Read for its span
 * alone, from the few pieces of the answer in which that stands.
 */
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Json from "../Json.ts"

/** How many of the last pieces of a stream are kept for this, and up to which size a whole answer is read once more. */
const lastPieces = 4
const maxBytes = 256 * 1024

/** Names of models and reasons, and nothing that could be more. */
const plain = /^[\w.:/@-]{1,128}$/

const isPlain = (value: unknown): value is string => typeof value === "string" && plain.test(value)

/** In whichever dialect. */
const reasonsIn = (json: unknown): ReadonlyArray<unknown> => {
  const { candidates, choices, delta, stop_reason } = Json.fields(json)
  return [
    ...Json.list(choices).map((choice) => Json.fields(choice)["finish_reason"]),
    ...Json.list(candidates).map((candidate) => Json.fields(candidate)["finishReason"]),
    stop_reason,
    Json.fields(delta)["stop_reason"]
  ]
}

const modelIn = (json: unknown): unknown => {
  const { message, model, modelVersion } = Json.fields(json)
  return model ?? modelVersion ?? Json.fields(message)["model"]
}

export class Ending {
  #first: Uint8Array | undefined
  #last: Array<Uint8Array> = []

  /** A piece of a stream. */
  pass(chunk: Uint8Array): void {
    if (this.#first === undefined) {
      this.#first = chunk
      return
    }
    this.#last.push(chunk)
    if (this.#last.length > lastPieces) this.#last.shift()
  }

  /** A whole answer. */
  whole(body: Uint8Array): void {
    if (body.length <= maxBytes) this.#first = body
  }

  /** For the span of the call. */
  attributes(): Readonly<Record<string, unknown>> {
    const told = Buffer.concat([this.#first ?? new Uint8Array(0), ...this.#last]).toString()
    const pieces = told.trimStart().startsWith("{")
      ? [told]
      : told.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice("data:".length))
    const all = pieces.map((piece) => Json.parse(piece))
    const reasons = all.flatMap(reasonsIn).filter(isPlain)
    const model = all.map(modelIn).find(isPlain)
    return {
      ...(model === undefined ? {} : { [Attributes.name.responseModel]: model }),
      ...(reasons.length === 0 ? {} : { [Attributes.name.finishReasons]: reasons })
    }
  }
}
