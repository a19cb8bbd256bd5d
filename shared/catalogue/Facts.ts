/** What clients may know about a model before they call it: its limits, its modalities, what it can do, and its price. */
import { Schema } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { Price } from "./Price.ts"

const Modalities = Schema.Array(Schema.Literals(["text", "image", "file", "audio", "video"]))

/** The settings of a model that say so. All may be unknown. */
export const Facts = Schema.Struct({
  /**
   * The most tokens of a request and its answer. A request that is too long for a target goes on to those of a larger window,
   * as far as the catalogue states them.
   */
  contextWindow: Schema.optionalKey(atLeast(1)),
  /** The most tokens of an answer. */
  maxOutputTokens: Schema.optionalKey(atLeast(1)),
  inputModalities: Schema.optionalKey(Modalities),
  outputModalities: Schema.optionalKey(Modalities),
  /** Whether it calls tools. */
  tools: Schema.optionalKey(Schema.Boolean),
  /** Whether it reasons before it answers. */
  reasoning: Schema.optionalKey(Schema.Boolean),
  /** The price at every target that has none of its own. */
  price: Schema.optionalKey(Price)
})
export type Facts = typeof Facts.Type
