/**
 * The audit record of a change of an API key or a team. It contains no secrets: of the key or team only what a listing shows, of a
 * webhook's URL only the origin.
 */
import { Schema } from "effect"

export const KeyChange = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  /** The administrator, by the name they gave. */
  by: Schema.String,
  action: Schema.Literals(["created", "edited", "disabled", "enabled", "revoked", "erased", "cancelled", "deleted"]),
  /** The key's or team's id, and its name at that time. For `erased` the owner's id, and no name; empty if the key was revoked. */
  key: Schema.String,
  name: Schema.String,
  /** The key's team after the change, or `null`. Absent for teams and `erased`, and in records of earlier versions. */
  team: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** The changed settings, if any; for tasks that were `cancelled` or `deleted` the task. */
  settings: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type KeyChange = typeof KeyChange.Type
