/** The rows of LiteLLM's database that the import reads, decoded from the text of a dump. */
import { Schema, SchemaGetter } from "effect"
import { fromArray } from "./dump/DumpText.ts"

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(schema)

const Text = maybe(Schema.String)
const Amount = maybe(Schema.FiniteFromString)
const Flag = maybe(
  Schema.Literals(["t", "f", "true", "false"]).pipe(
    Schema.decodeTo(Schema.Boolean, {
      decode: SchemaGetter.transform((text) => text.startsWith("t")),
      encode: SchemaGetter.forbiddenEncoding
    })
  )
)
const Names = maybe(
  Schema.String.check(Schema.makeFilter((text) => fromArray(text) !== undefined, { expected: "an array of texts" }))
    .pipe(
      Schema.decodeTo(Schema.Array(Schema.String), {
        decode: SchemaGetter.transform((text) => fromArray(text) ?? []),
        encode: SchemaGetter.forbiddenEncoding
      })
    )
)

/** Without a time zone, which means UTC there. */
const Moment = maybe(
  Schema.String.pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((text) => {
        const iso = text.replace(" ", "T")
        return /[+-]\d\d$/.test(iso) ? `${iso}:00` : /Z$|[+-]\d\d:\d\d$/.test(iso) ? iso : `${iso}Z`
      }),
      encode: SchemaGetter.forbiddenEncoding
    }),
    Schema.decodeTo(Schema.DateTimeUtcFromString)
  )
)

const limits = {
  max_budget: Amount,
  budget_duration: Text,
  max_parallel_requests: Amount,
  tpm_limit: Amount,
  rpm_limit: Amount
}

/** The columns of each table that the import reads. */
export const tables = {
  LiteLLM_VerificationToken: Schema.Struct({
    token: Schema.String,
    key_name: Text,
    key_alias: Text,
    expires: Moment,
    models: Names,
    team_id: Text,
    budget_id: Text,
    blocked: Flag,
    spend: Amount,
    ...limits
  }),
  LiteLLM_TeamTable: Schema.Struct({
    team_id: Schema.String,
    team_alias: Text,
    models: Names,
    blocked: Flag
  }),
  LiteLLM_BudgetTable: Schema.Struct({ budget_id: Schema.String, ...limits }),
  LiteLLM_ProxyModelTable: Schema.Struct({ model_name: Schema.String }),
  LiteLLM_Config: Schema.Struct({ param_name: Schema.String })
} as const
export type Table = keyof typeof tables
export type KeyRow = typeof tables.LiteLLM_VerificationToken.Type
export type TeamRow = typeof tables.LiteLLM_TeamTable.Type
export type BudgetRow = typeof tables.LiteLLM_BudgetTable.Type
