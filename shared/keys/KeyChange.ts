/** What is written down of a change of an API key. Never secrets: it says no more than a listing of the keys. */
import { Schema } from "effect"

export const KeyChange = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  /** Who, as they named themselves. */
  by: Schema.String,
  action: Schema.Literals(["created", "edited", "disabled", "enabled", "revoked"]),
  /** The key's id, and its name at that time. */
  key: Schema.String,
  name: Schema.String,
  /** What was set, where settings were. */
  settings: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type KeyChange = typeof KeyChange.Type
