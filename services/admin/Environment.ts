/** The environment variables to which a catalogue refers, by names that no `Config` knows beforehand. */
import { Context } from "effect"

export const Environment = Context.Reference<Readonly<Record<string, string | undefined>>>(
  "gateway/admin/Environment",
  {
    defaultValue: () => process.env
  }
)
