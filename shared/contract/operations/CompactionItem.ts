/** A part of a conversation that was summarised and sealed: clients keep it and give it back in place of what it stands for. */
import { Schema } from "effect"

export const CompactionItem = Schema.Struct({
  type: Schema.Literal("compaction"),
  encrypted_content: Schema.NonEmptyString.annotateKey({
    description: "Opaque. It can be read only by the service that made it, and only for the client it was made for."
  }),
  id: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type CompactionItem = typeof CompactionItem.Type
