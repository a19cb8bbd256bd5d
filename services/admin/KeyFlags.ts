/** What can be said of a key on the command line: a flag for each of its settings. */
import { Option, Struct } from "effect"
import { Flag } from "effect/cli"
import { KeyChanges } from "../../shared/keys/KeySettings.ts"
import { flagDecoder } from "./FlagDecoder.ts"

const optional = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

/** Whatever is not given stays as it is, or as it is by default. */
export const flags = {
  expiresAt: optional("expires", "DATE", "When it ends to be valid: 2027-01-31, 2027-01-31T12:00:00Z, or none"),
  requestsPerMinute: optional(
    "requests-per-minute",
    "N",
    "Requests in any minute, over all ingress processes; or none"
  ),
  tokensPerMinute: optional("tokens-per-minute", "N", "Tokens in any minute, input and output together; or none"),
  concurrentRequests: optional("concurrent", "N", "Requests at one time; or none"),
  allowedModels: optional(
    "models",
    "NAMES",
    "What it may ask for, with commas between: names, or beginnings as in gpt-*"
  ),
  priorityClass: optional("class", "CLASS", "What goes first where a queue forms: interactive, standard or batch"),
  weight: optional("weight", "N", "Its share of the turns within its class, 1 to 100"),
  monthlyBudgetUsd: optional("budget", "USD", "What may be spent in a calendar month (UTC), in US dollars; or none")
}

type Given = { readonly [Setting in keyof typeof flags]: Option.Option<string> }

/** As JSON has it. What is no number stays text, and is refused by the schema where a number is wanted. */
const plain = (setting: keyof Given, text: string): unknown => {
  if (setting === "allowedModels") return text.split(",").map((model) => model.trim())
  if (text === "none") return null
  return setting === "expiresAt" || text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text)
}

const decode = flagDecoder(KeyChanges)

/** The settings that were given. */
export const settingsOf = (given: Given) => {
  const found: Record<string, unknown> = {}
  for (const setting of Struct.keys(flags)) {
    const text = given[setting]
    if (Option.isSome(text)) found[setting] = plain(setting, text.value)
  }
  return decode(found)
}
