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

/** A timestamp. One without a time zone is in UTC. */
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
export type LimitColumns = Schema.Struct.Type<typeof limits>

/** The columns of each table that the import reads. */
export const tables = {
  LiteLLM_VerificationToken: Schema.Struct({
    token: Schema.String,
    key_name: Text,
    key_alias: Text,
    expires: Moment,
    models: Names,
    team_id: Text,
    organization_id: Text,
    budget_id: Text,
    blocked: Flag,
    spend: Amount,
    ...limits
  }),
  LiteLLM_TeamTable: Schema.Struct({
    team_id: Schema.String,
    team_alias: Text,
    organization_id: Text,
    models: Names,
    blocked: Flag,
    spend: Amount,
    ...limits
  }),
  LiteLLM_OrganizationTable: Schema.Struct({
    organization_id: Schema.String,
    organization_alias: Text,
    budget_id: Text,
    models: Names,
    spend: Amount
  }),
  LiteLLM_BudgetTable: Schema.Struct({ budget_id: Schema.String, ...limits }),
  LiteLLM_ProxyModelTable: Schema.Struct({ model_name: Schema.String }),
  LiteLLM_Config: Schema.Struct({ param_name: Schema.String })
} as const
export type Table = keyof typeof tables
export type KeyRow = typeof tables.LiteLLM_VerificationToken.Type
export type TeamRow = typeof tables.LiteLLM_TeamTable.Type
export type OrganisationRow = typeof tables.LiteLLM_OrganizationTable.Type
export type BudgetRow = typeof tables.LiteLLM_BudgetTable.Type

/** The tables whose rows become teams, and those whose rows may have limits, a budget and models. */
export type TeamTable = "LiteLLM_TeamTable" | "LiteLLM_OrganizationTable"
export type OwnerTable = TeamTable | "LiteLLM_VerificationToken"

/** The first name that is not empty, cut to the maximum length of a key's or team's name. */
const firstName = (...names: ReadonlyArray<string | undefined>): string =>
  (names.find((name) => name !== undefined && name !== "") ?? "unnamed").slice(0, 200)

/** Names of keys and teams, which the report uses, too. */
export const nameOf = {
  LiteLLM_VerificationToken: ({ key_alias, key_name, token }: KeyRow) =>
    firstName(key_alias, key_name, token.slice(0, 8)),
  LiteLLM_TeamTable: ({ team_alias, team_id }: TeamRow) => firstName(team_alias, team_id),
  LiteLLM_OrganizationTable: ({ organization_alias, organization_id }: OrganisationRow) =>
    firstName(organization_alias, organization_id)
}
