/** Finds what spans say about an answer, its model and the reason why it ended, in its first and last pieces. */
import type { Tracer } from "effect"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as EstimatedUsage from "../call/EstimatedUsage.ts"
import * as FinishReasons from "../dialects/finish/FinishReasons.ts"
import * as Json from "../json/Json.ts"

/** How many of a stream's last pieces are kept. */
export const keptPieces = 4

export interface Piece {
  /** The size in bytes. */
  readonly size: number
  /** `undefined` if the piece is not JSON. */
  readonly json: unknown
}

/** The first piece of a stream and the last ones, with the number and size of all. */
export class Ends<P extends Piece> {
  #first: P | undefined
  #last: Array<P> = []
  #count = 0
  #bytes = 0

  pass(piece: P): void {
    this.#count++
    this.#bytes += piece.size
    if (this.#last.push(piece) <= keptPieces) return
    this.#first ??= this.#last[0]
    this.#last.shift()
  }

  /** Counts pieces without keeping them. They must not be the first, and at least `keptPieces` pieces must follow. */
  passOver(count: number, bytes: number): void {
    this.#count += count
    this.#bytes += bytes
  }

  get last(): ReadonlyArray<P> {
    return this.#last
  }

  get all(): ReadonlyArray<P> {
    return this.#first === undefined ? this.#last : [this.#first, ...this.#last]
  }

  /**
   * The estimated size of the text in all pieces, in bytes. Only the kept pieces are read. Of the others it is assumed that they have the
   * same envelope around their text, and at least one token of text each.
   */
  get textBytes(): number {
    let [known, envelopes, samples, others] = [0, 0, 0, this.#bytes]
    for (const { json, size } of this.all) {
      const text = EstimatedUsage.textBytes(json)
      known += text
      others -= size
      if (text === 0) continue
      envelopes += size - text
      samples++
    }
    const count = this.#count - this.all.length
    if (count === 0 || samples === 0) return known
    return known + Math.max(count * EstimatedUsage.bytesPerToken, others - count * envelopes / samples)
  }
}

/** Matches names of models and reasons, but not the text of an answer. */
const plain = /^[\w.:/@-]{1,128}$/

const isPlain = (value: unknown): value is string => typeof value === "string" && plain.test(value)

/** Adds the finish reasons of any dialect. */
const addReasons = (json: unknown, reasons: Array<string>): void => {
  const { candidates, choices, delta, stop_reason } = Json.fields(json)
  const add = (reason: unknown): void => {
    if (isPlain(reason) && FinishReasons.reasonIn(reason) !== undefined) reasons.push(reason)
  }
  for (const choice of Json.list(choices)) add(Json.fields(choice)["finish_reason"])
  for (const candidate of Json.list(candidates)) add(Json.fields(candidate)["finishReason"])
  add(stop_reason)
  add(Json.fields(delta)["stop_reason"])
}

const modelIn = (json: unknown): unknown => {
  const { message, model, modelVersion } = Json.fields(json)
  return model ?? modelVersion ?? Json.fields(message)["model"]
}

/** The reasons why the answer ended, as far as these pieces contain them. */
export const reasonsIn = (pieces: ReadonlyArray<unknown>): ReadonlyArray<string> => {
  const reasons: Array<string> = []
  for (const piece of pieces) addReasons(piece, reasons)
  return reasons
}

/** Adds the metadata to the call's span. */
export const annotate = (span: Tracer.Span, pieces: ReadonlyArray<unknown>): void => {
  const reasons = reasonsIn(pieces)
  const model = pieces.map(modelIn).find(isPlain)
  if (model !== undefined) span.attribute(Attributes.name.responseModel, model)
  if (reasons.length > 0) span.attribute(Attributes.name.finishReasons, reasons)
}
