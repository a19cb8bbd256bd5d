/** The settings of a team. Imports nothing from Node, because the console's pages use it too. */
import { Schema, Struct } from "effect"
import { AllowedModels, Budget, eachOf, KeyDefaults, Limit, Name, setting, TeamId } from "../keys/KeySettings.ts"

/** All settings but the name, each with its default for a new team. All keys below a team share the team's limits. */
const settings = {
  /** The team above; `null` for the root of a tree, such as an organisation. */
  parent: setting(Schema.NullOr(TeamId), null),
  description: setting(Schema.String.check(Schema.isMaxLength(1_000)), ""),
  /** The models that keys below may use, as names or as `prefix*`. The key and all other teams above it must allow a model too. */
  allowedModels: setting(AllowedModels, ["*"]),
  /** Limits hold across all ingress processes; `null` for none. */
  requestsPerMinute: setting(Limit, null),
  tokensPerMinute: setting(Limit, null),
  concurrentRequests: setting(Limit, null),
  monthlyBudgetUsd: setting(Budget, null),
  /** Default settings of the team's new keys. Existing keys keep theirs. */
  keyDefaults: setting(KeyDefaults, {})
}

/** The default settings of a new team. */
export const defaults = eachOf(settings, "fallback")

export const TeamSettings = Schema.Struct({ name: Name, ...eachOf(settings, "stored") })
export type TeamSettings = typeof TeamSettings.Type

/** The settings that an edit changes. */
export const TeamChanges = Schema.Struct({ name: Name, ...eachOf(settings, "schema") }).mapFields(
  Struct.map(Schema.optionalKey)
)
export type TeamChanges = typeof TeamChanges.Type
