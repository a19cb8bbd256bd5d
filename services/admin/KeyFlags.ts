/** The flags of `keys create` and `keys edit`: one for each setting of a key. */
import { Option, Struct } from "effect"
import { Flag } from "effect/cli"
import { KeyChanges } from "../../shared/keys/KeySettings.ts"
import { flagDecoder } from "./FlagDecoder.ts"

/** Flag names by setting. */
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

/** An omitted flag keeps the setting's current value, or its default for a new key. */
export const flags = {
  expiresAt: optional("expiresAt", "DATE", "Expiry date: 2027-01-31, 2027-01-31T12:00:00Z, or none"),
  requestsPerMinute: optional("requestsPerMinute", "N", "Requests per minute across all ingress replicas, or none"),
  tokensPerMinute: optional("tokensPerMinute", "N", "Input plus output tokens per minute, or none"),
  concurrentRequests: optional("concurrentRequests", "N", "Concurrent requests, or none"),
  allowedModels: optional(
    "allowedModels",
    "NAMES",
    "Allowed models, comma-separated: names, or prefixes such as gpt-*"
  ),
  priorityClass: optional("priorityClass", "CLASS", "Priority in the queue: interactive, standard or batch"),
  weight: optional("weight", "N", "Share of turns within the priority class, 1 to 100"),
  monthlyBudgetUsd: optional("monthlyBudgetUsd", "USD", "Budget per calendar month (UTC) in US dollars, or none")
}

type Given = { readonly [Setting in keyof typeof names]: Option.Option<string> }

const texts: ReadonlySet<keyof Given> = new Set(["name", "expiresAt"])

/** A flag's text as a JSON value. Text that is not a number stays text, so that the schema rejects it. */
const toJson = (setting: keyof Given, text: string): unknown => {
  if (setting === "allowedModels") return text.split(",").map((model) => model.trim())
  if (text === "none" && setting !== "name") return null
  return texts.has(setting) || text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text)
}

const decode = flagDecoder(KeyChanges, names)

/** Decodes the settings given as flags. */
export const decodeSettings = (given: Given) => {
  const settings: Record<string, unknown> = {}
  for (const setting of Struct.keys(names)) {
    const text = given[setting]
    if (Option.isSome(text)) settings[setting] = toJson(setting, text.value)
  }
  return decode(settings)
}
