/** The teams whose usage includes that of a key. `TeamsOfKeys.ts` provides them to the process that counts usage. */
import { Context } from "effect"

/** The ids of a key's team and the teams above it, the nearest first. By default keys have no teams. */
export const KeyTeams = Context.Reference<(key: string) => ReadonlyArray<string>>("shared/usage/KeyTeams", {
  defaultValue: () => () => []
})
