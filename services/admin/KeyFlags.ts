/** The flags of `keys create` and `keys edit`: one for each setting of a key. */
import { type Option, Record as Rec } from "effect"
import { Flag } from "effect/cli"
import { KeyChanges } from "../../shared/keys/KeySettings.ts"
import { flagDecoder } from "./FlagDecoder.ts"

/** Name, placeholder and description of each setting's flag. */
const table = {
  expiresAt: ["expires", "DATE", "Expiry date: 2027-01-31, 2027-01-31T12:00:00Z, or none"],
  requestsPerMinute: ["requests-per-minute", "N", "Requests per minute across all ingress replicas, or none"],
  tokensPerMinute: ["tokens-per-minute", "N", "Input plus output tokens per minute, or none"],
  concurrentRequests: ["concurrent", "N", "Concurrent requests, or none"],
  batchConcurrency: ["batch-concurrency", "N", "Lines of batches that run concurrently"],
  allowedModels: ["models", "NAMES", "Allowed models, comma-separated: names, or prefixes such as gpt-*"],
  priorityClass: ["class", "CLASS", "Priority in the queue: interactive, standard or batch"],
  weight: ["weight", "N", "Share of turns within the priority class, 1 to 100"],
  monthlyBudgetUsd: ["budget", "USD", "Budget per calendar month (UTC) in US dollars, or none"],
  team: ["team", "ID", "Id of the team whose limits and budget apply, too, or none"]
} as const

/** An omitted flag keeps the setting's current value, or its default for a new key. */
export const flags = Rec.map(
  table,
  ([name, metavar, description]) =>
    Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)
)

const texts: ReadonlyArray<string> = ["expiresAt", "team"]

/** A flag's text as a JSON value. Text that is not a number stays text, so that the schema rejects it. */
const toJson = (text: string, setting: string): unknown => {
  if (setting === "name") return text
  if (setting === "allowedModels") return text.split(",").map((model) => model.trim())
  if (text === "none") return null
  return texts.includes(setting) || text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text)
}

const orNone = new Set(Rec.keys(Rec.filter(table, ([, , description]) => description.endsWith("or none"))))

const decode = flagDecoder(KeyChanges, Rec.map(table, ([name]) => name), orNone)

/** Decodes the settings given as flags. */
export const decodeSettings = (given: Readonly<Record<keyof typeof table | "name", Option.Option<string>>>) =>
  decode(Rec.map(Rec.getSomes(given), toJson))
