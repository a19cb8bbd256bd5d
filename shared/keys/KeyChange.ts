/**
 * The audit record of a change to an API key or a team. Contains no secrets: only what a listing shows of the key or team, and only
 * the origin of a webhook's URL.
 */
import { Schema } from "effect"

export const KeyChange = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  /** The administrator, by the name they gave. */
  by: Schema.String,
  action: Schema.Literals(["created", "edited", "disabled", "enabled", "revoked", "erased", "cancelled", "deleted"]),
  /** The id and the name, at that time, of the key or team. For `erased`, the owner's id; the name is empty if the key was revoked. */
  key: Schema.String,
  name: Schema.String,
  /** The key's team after the change, or `null`. Absent for teams and `erased`, and in records of earlier versions. */
  team: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** The changed settings, if any. For a `cancelled` or `deleted` task: the task. */
  settings: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type KeyChange = typeof KeyChange.Type
