/** The form in which a client asks for vectors and gets them. */
import type { Schema } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import type { Fate, Losses } from "../conversation/Losses.ts"
import type { EmbeddingRequest, Purpose, Vector } from "./EmbeddingModel.ts"

export interface AskedVectors extends Pick<EmbeddingRequest, "dimensions" | "extra" | "texts"> {
  readonly purpose?: { readonly is: Purpose; readonly path: string } | undefined
}

/** Writes one answer, in pieces of JSON. */
export interface VectorPrinter {
  readonly start: string
  readonly vector: (vector: Vector, index: number) => string
  /** `model` is the name of the model that answers. */
  readonly end: (usage: Usage, model: string) => string
}

export interface EmbeddingForm<Request> {
  readonly operation: string
  readonly request: Schema.Codec<Request, unknown>
  readonly dimensionsName: string
  /** The fields that may hold a list of texts. Without a list there is one text. */
  readonly lists: ReadonlyArray<string>
  /** What happens to each field; absent if the provider gets those that are unknown. */
  readonly fates?: Fate
  readonly read: (request: Request, json: unknown, losses: Losses) => AskedVectors
  readonly printer: (request: Request, texts: ReadonlyArray<string>) => VectorPrinter
}

export const toNumbers = (vector: Vector): string => `[${Array.prototype.join.call(vector)}]`

/** Little-endian 32-bit floats, as a JSON string. */
export const toBase64 = (vector: Vector): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (let at = 0; at < vector.length; at++) bytes.writeFloatLE(vector[at] as number, at * 4)
  return `"${bytes.toString("base64")}"`
}

/** After the first item of a list. */
export const comma = (index: number): string => index === 0 ? "" : ","
