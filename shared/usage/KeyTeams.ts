/** The teams that share what a key uses: known to the process that counts usage, which provides them. */
import { Context } from "effect"

/** The ids of the key's team and those above it, the nearest first. By default keys have no teams. */
export const KeyTeams = Context.Reference<(key: string) => ReadonlyArray<string>>("shared/usage/KeyTeams", {
  defaultValue: () => () => []
})
