/** What can be said of a key on the command line: a flag for each of its settings. */
import { Option, Struct } from "effect"
import { Flag } from "effect/cli"
import { KeyChanges } from "../../shared/keys/KeySettings.ts"
import { flagDecoder } from "./FlagDecoder.ts"

/** What the flag of a setting is called. */
const names = {
  name: "name",
  expiresAt: "expires",
  requestsPerMinute: "requests-per-minute",
  tokensPerMinute: "tokens-per-minute",
  concurrentRequests: "concurrent",
  allowedModels: "models",
  priorityClass: "class",
  weight: "weight",
  monthlyBudgetUsd: "budget"
}

const optional = (setting: keyof typeof names, metavar: string, description: string) =>
  Flag.String(names[setting]).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

/** Whatever is not given stays as it is, or as it is by default. */
export const flags = {
  expiresAt: optional("expiresAt", "DATE", "When it ends to be valid: 2027-01-31, 2027-01-31T12:00:00Z, or none"),
  requestsPerMinute: optional(
    "requestsPerMinute",
    "N",
    "Requests in any minute, over all ingress processes; or none"
  ),
  tokensPerMinute: optional("tokensPerMinute", "N", "Tokens in any minute, input and output together; or none"),
  concurrentRequests: optional("concurrentRequests", "N", "Requests at one time; or none"),
  allowedModels: optional(
    "allowedModels",
    "NAMES",
    "What it may ask for, with commas between: names, or beginnings as in gpt-*"
  ),
  priorityClass: optional(
    "priorityClass",
    "CLASS",
    "What goes first where a queue forms: interactive, standard or batch"
  ),
  weight: optional("weight", "N", "Its share of the turns within its class, 1 to 100"),
  monthlyBudgetUsd: optional(
    "monthlyBudgetUsd",
    "USD",
    "What may be spent in a calendar month (UTC), in US dollars; or none"
  )
}

type Given = { readonly [Setting in keyof typeof names]: Option.Option<string> }

const texts: ReadonlySet<keyof Given> = new Set(["name", "expiresAt"])

/** As JSON has it. What is no number stays text, and is refused by the schema where a number is wanted. */
const plain = (setting: keyof Given, text: string): unknown => {
  if (setting === "allowedModels") return text.split(",").map((model) => model.trim())
  if (text === "none" && setting !== "name") return null
  return texts.has(setting) || text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text)
}

const decode = flagDecoder(KeyChanges, names)

/** The settings that were given. */
export const settingsOf = (given: Given) => {
  const found: Record<string, unknown> = {}
  for (const setting of Struct.keys(names)) {
    const text = given[setting]
    if (Option.isSome(text)) found[setting] = plain(setting, text.value)
  }
  return decode(found)
}
