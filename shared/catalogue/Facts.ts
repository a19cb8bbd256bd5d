/** Facts about a model for clients: its limits, its modalities, its abilities and its price. */
import { Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { Price } from "./Price.ts"

const Modalities = Schema.Array(Schema.Literals(["text", "image", "file", "audio", "video"]))

/** A model's settings with these facts. Any of them may be absent. */
export const Facts = Schema.Struct({
  /**
   * Maximum number of tokens of a request and its answer together. A request that is too long for a target is sent to targets with a
   * larger window, as far as the catalogue states windows.
   */
  contextWindow: Schema.optionalKey(atLeast(1)),
  /** Maximum number of tokens of an answer. */
  maxOutputTokens: Schema.optionalKey(atLeast(1)),
  inputModalities: Schema.optionalKey(Modalities),
  outputModalities: Schema.optionalKey(Modalities),
  /** Whether the model can call tools. */
  tools: Schema.optionalKey(Schema.Boolean),
  /** Whether the model reasons before it answers. */
  reasoning: Schema.optionalKey(Schema.Boolean),
  /** The price at every target that does not set its own. */
  price: Schema.optionalKey(Price)
})
export type Facts = typeof Facts.Type
