/** A summarised and encrypted part of a conversation, which clients send back in place of that part. */
import { Schema } from "effect"

export const CompactionItem = Schema.Struct({
  type: Schema.Literal("compaction"),
  encrypted_content: Schema.NonEmptyString.annotateKey({
    description:
      "Opaque. Only this gateway can decrypt it, and only in requests with the API key that was used to create it."
  }),
  id: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type CompactionItem = typeof CompactionItem.Type
