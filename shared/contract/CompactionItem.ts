/** A part of a conversation that was summarised and sealed: clients keep it and give it back in place of what it stands for. */
import { Schema } from "effect"

export const CompactionItem = Schema.Struct({
  type: Schema.Literal("compaction"),
  /** Opaque. It can be read only by the service that made it, and only for the client it was made for. */
  encrypted_content: Schema.NonEmptyString,
  id: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type CompactionItem = typeof CompactionItem.Type
