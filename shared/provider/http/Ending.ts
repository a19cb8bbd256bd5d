/**
 * What a provider's answer says of itself beside what it says: which model it was, and why it ended. That stands in its
 * first piece and in its last ones.
 */
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Json from "../Json.ts"

/** How many of the last pieces of a stream are remembered. */
const remembered = 4

/** The pieces of a stream where it begins and where it ends. */
export class Ends<Piece> {
  #first: Piece | undefined
  #last: Array<Piece> = []

  pass(piece: Piece): void {
    if (this.#last.push(piece) <= remembered) return
    this.#first ??= this.#last[0]
    this.#last.shift()
  }

  get last(): ReadonlyArray<Piece> {
    return this.#last
  }

  get all(): ReadonlyArray<Piece> {
    return this.#first === undefined ? this.#last : [this.#first, ...this.#last]
  }
}

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

/** For the span of the call. */
export const attributes = (pieces: ReadonlyArray<unknown>): Readonly<Record<string, unknown>> => {
  const reasons = pieces.flatMap(reasonsIn).filter(isPlain)
  const model = pieces.map(modelIn).find(isPlain)
  return {
    ...(model === undefined ? {} : { [Attributes.name.responseModel]: model }),
    ...(reasons.length === 0 ? {} : { [Attributes.name.finishReasons]: reasons })
  }
}
