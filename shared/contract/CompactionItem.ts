/** The schema of a summarised and encrypted part of a conversation, which clients send back in place of that part. */
import { Schema } from "effect"
import { constant, field, optional } from "./Fields.ts"

export const CompactionItem = Schema.Struct({
  type: constant("compaction", "The encrypted summary of a conversation."),
  encrypted_content: field(
    Schema.NonEmptyString,
    "Opaque. Only this gateway can decrypt it, and only in requests with the API key that was used to create it."
  ),
  id: optional(Schema.String, "The item's id in the compaction's output. Has no effect in requests.")
})
export type CompactionItem = typeof CompactionItem.Type
