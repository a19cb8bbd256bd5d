/** Reads LiteLLM's keys, teams, organisations and budgets from a dump of its database, and lists all other rows. */
import { Effect, FileSystem, Result, Schema, Stream } from "effect"
import * as SchemaErrors from "../../../shared/contract/SchemaErrors.ts"
import { DumpReader, type Row } from "./dump/DumpReader.ts"
import { Omissions } from "./Omissions.ts"
import {
  type BudgetRow,
  type KeyRow,
  nameOf,
  type OrganisationRow,
  type Table,
  tables,
  type TeamRow
} from "./Tables.ts"

/** The file is not a plain dump of LiteLLM's database, or is incomplete. */
export class DumpInvalid extends Schema.TaggedError<DumpInvalid>()("DumpInvalid", {
  file: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.file}: ${this.detail}`
  }
}

export interface Dump {
  readonly keys: ReadonlyArray<KeyRow>
  readonly teams: ReadonlyArray<TeamRow>
  readonly organisations: ReadonlyArray<OrganisationRow>
  readonly budgets: ReadonlyArray<BudgetRow>
  readonly omissions: Omissions
}

const isWanted = (table: string): table is Table => Object.hasOwn(tables, table)

/** Columns that need no report, because they only describe a row or follow from other columns. */
const descriptive =
  /^(?:created_|updated_|last_|settings_updated_at|budget_reset_at|rotation_count|total_spend|spend$|model_spend|soft_budget_cooldown|key_type|key_name|admins|members)/

/** What to do about a column that has no counterpart, by its name. */
const advice: Readonly<Record<string, string>> = {
  user_id: "keys have no users: see the name of the key",
  metadata: "limits by model, tags and guardrails in it have no counterpart",
  aliases: "keys have no aliases of models: add them as models",
  allowed_routes: "the key may use every operation",
  model_max_budget: "there are no budgets by model: create a key for the model",
  soft_budget: "webhooks of teams warn at 50, 80 and 100 % of a budget",
  tpd_limit: "there are no limits per day",
  auto_rotate: "keys are replaced by `npm run keys -- replace`"
}

const rests: Readonly<Record<string, string>> = {
  LiteLLM_UserTable: "users have no counterpart: their keys are imported, their own budgets are not",
  LiteLLM_EndUserTable: "budgets of end users have no counterpart",
  LiteLLM_TeamMembership: "budgets of members of a team have no counterpart: give each a key with a budget",
  LiteLLM_CredentialsTable: "they are encrypted: state them as variables of the workers",
  LiteLLM_DeprecatedVerificationToken: "the gateway does not accept the old values of rotated keys"
}

/** Whether a table holds only logs and counters of the past. */
const isHistory = (table: string): boolean =>
  /Logs?$|^LiteLLM_(?:Daily|Deleted|Audit|SpendLog|HealthCheck|Cron|ErrorLogs|Retired)|^_prisma|Heartbeat$/.test(table)

const emptyValues = new Set(["", "{}", "[]", "null", "f", "false", "0"])

const isEmpty = (value: string | null): boolean => value === null || emptyValues.has(value)

type Rows = { readonly [Name in Table]: Array<(typeof tables)[Name]["Type"]> }

class Collector {
  readonly rows: Rows = {
    LiteLLM_VerificationToken: [],
    LiteLLM_TeamTable: [],
    LiteLLM_OrganizationTable: [],
    LiteLLM_BudgetTable: [],
    LiteLLM_ProxyModelTable: [],
    LiteLLM_Config: []
  }
  readonly omissions = new Omissions()
  readonly mistakes: Array<string> = []

  readonly #readers: Readonly<Record<Table, (given: Row) => void>> = {
    LiteLLM_VerificationToken: this.#reader("LiteLLM_VerificationToken", nameOf.LiteLLM_VerificationToken),
    LiteLLM_TeamTable: this.#reader("LiteLLM_TeamTable", nameOf.LiteLLM_TeamTable),
    LiteLLM_OrganizationTable: this.#reader("LiteLLM_OrganizationTable", nameOf.LiteLLM_OrganizationTable),
    LiteLLM_BudgetTable: this.#reader("LiteLLM_BudgetTable", ({ budget_id }) => budget_id),
    LiteLLM_ProxyModelTable: this.#reader("LiteLLM_ProxyModelTable"),
    LiteLLM_Config: this.#reader("LiteLLM_Config")
  }

  add(table: string, row: Row): void {
    if (isWanted(table)) this.#readers[table](row)
  }

  /** Returns a reader of one table's rows. With `nameOf`, it reports the columns that the import does not read. */
  #reader<Name extends Table>(name: Name, nameOf?: (row: Rows[Name][number]) => string): (given: Row) => void {
    const schema = tables[name] as unknown as Schema.Codec<Rows[Name][number], unknown>
    const decode = Schema.decodeUnknownResult(schema, { errors: "all" })
    const known = new Set(Object.keys(tables[name].fields))
    return (given) => {
      const decoded = decode(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)))
      const rows: Array<Rows[Name][number]> = this.rows[name]
      if (Result.isFailure(decoded)) {
        const errors = SchemaErrors.all(decoded.failure.issue, given)
        this.mistakes.push(
          ...errors.map((error) => `${name}, row ${rows.length + 1}: ${SchemaErrors.formatError(error, "it")}`)
        )
        return
      }
      rows.push(decoded.success)
      if (nameOf === undefined) return
      for (const [column, value] of Object.entries(given)) {
        if (known.has(column) || descriptive.test(column) || isEmpty(value)) continue
        this.omissions.add(
          `${name}.${column}`,
          advice[column] ?? "no counterpart",
          nameOf(decoded.success)
        )
      }
    }
  }
}

const reportTables = ({ omissions, rows }: Collector, counts: ReadonlyMap<string, number>): void => {
  for (const { model_name } of rows.LiteLLM_ProxyModelTable) {
    omissions.add(
      "LiteLLM_ProxyModelTable",
      "models in the database are encrypted: add them to config.yaml and import again",
      model_name
    )
  }
  for (const { param_name } of rows.LiteLLM_Config) {
    omissions.add(
      "LiteLLM_Config",
      "settings in the database are not read: add them to config.yaml and import again",
      param_name
    )
  }
  for (const [table, count] of counts) {
    if (count === 0 || isWanted(table)) continue
    const message = isHistory(table) ? "past usage and logs are not imported" : rests[table] ?? "no counterpart"
    omissions.add(`${count} row${count === 1 ? "" : "s"}`, message, table)
  }
}

/** Reads a plain SQL dump as a stream. */
export const readDump = Effect.fn("readDump")(function*(file: string) {
  const collector = new Collector()
  const reader = new DumpReader(isWanted, (table, row) => collector.add(table, row))
  const fail = (detail: string) => new DumpInvalid({ file, detail })
  const check = (wrong: string | undefined) => wrong === undefined ? Effect.void : Effect.fail(fail(wrong))
  const fs = yield* FileSystem.FileSystem
  yield* Stream.runForEach(fs.stream(file), (bytes) => Effect.suspend(() => check(reader.push(bytes))))
  yield* check(reader.end())
  if (!reader.counts.has("LiteLLM_VerificationToken")) {
    return yield* fail("has no table LiteLLM_VerificationToken: dump LiteLLM's database as plain SQL")
  }
  if (collector.mistakes.length > 0) return yield* fail(collector.mistakes.slice(0, 20).join("\n"))
  reportTables(collector, reader.counts)
  const { rows } = collector
  return {
    keys: rows.LiteLLM_VerificationToken,
    teams: rows.LiteLLM_TeamTable,
    organisations: rows.LiteLLM_OrganizationTable,
    budgets: rows.LiteLLM_BudgetTable,
    omissions: collector.omissions
  } satisfies Dump
})
