/**
 * Decodes the settings of LiteLLM's `config.yaml` that the import reads. `unknownIn` finds all others.
 *
 * Numbers may contain underscores (`20_000`), because LiteLLM reads YAML 1.1.
 */
import { Effect, Predicate, Result, Schema, SchemaGetter } from "effect"
import * as CatalogueFile from "../../../shared/catalogue/CatalogueFile.ts"
import * as YamlText from "../../../shared/catalogue/file/YamlText.ts"
import * as SchemaErrors from "../../../shared/contract/SchemaErrors.ts"

type Path = ReadonlyArray<PropertyKey>

const maybe = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(schema)

const Text = maybe(Schema.String)
const Flag = maybe(Schema.Boolean)

/** A number, or a text that contains one. */
const Amount = Schema.Union([
  Schema.Finite,
  Schema.String.check(Schema.isPattern(/^\d[\d_]*(?:\.\d+)?(?:e-?\d+)?$/i, { expected: "a number" })).pipe(
    Schema.decodeTo(Schema.Finite, {
      decode: SchemaGetter.transform((text) => Number(text.replaceAll("_", ""))),
      encode: SchemaGetter.transform(String)
    })
  )
])
const Quantity = maybe(Amount)

/** Prices, and numbers of tokens. */
const Price = maybe(Amount.check(Schema.isGreaterThanOrEqualTo(0)))
const Tokens = maybe(Amount.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)))

/** Prices of a model, which are in the deployment's parameters or in its `model_info`. */
const prices = {
  input_cost_per_token: Price,
  output_cost_per_token: Price,
  cache_read_input_token_cost: Price,
  cache_creation_input_token_cost: Price,
  cache_creation_input_token_cost_above_1hr: Price,
  input_cost_per_query: Price,
  input_cost_per_character: Price,
  input_cost_per_second: Price,
  output_cost_per_second: Price,
  output_cost_per_image: Price
}
export type Prices = Schema.Struct<typeof prices>["Type"]

/** What `credential_list` may hold for deployments. */
const credentials = { api_key: Text, api_base: Text, api_version: Text }

const Parameters = Schema.Struct({
  model: Schema.NonEmptyString,
  custom_llm_provider: Text,
  ...credentials,
  base_url: Text,
  litellm_credential_name: Text,
  rpm: Quantity,
  tpm: Quantity,
  max_parallel_requests: Quantity,
  weight: Quantity,
  order: Quantity,
  timeout: Quantity,
  stream_timeout: Quantity,
  num_retries: Quantity,
  max_retries: Quantity,
  cooldown_time: Quantity,
  ...prices
})

const ModelInfo = Schema.Struct({
  mode: Text,
  base_model: Text,
  description: Text,
  max_tokens: Tokens,
  max_input_tokens: Tokens,
  max_output_tokens: Tokens,
  supports_vision: Flag,
  supports_function_calling: Flag,
  supports_reasoning: Flag,
  access_groups: maybe(Schema.Array(Schema.String)),
  team_id: Text,
  ...prices
})

const Deployment = Schema.Struct({
  model_name: Schema.NonEmptyString,
  litellm_params: Parameters,
  model_info: maybe(ModelInfo)
})
export type Deployment = typeof Deployment.Type

/** `[{ "gpt-4": ["gpt-4o", { model: "gpt-5" }] }]` */
const Fallbacks = maybe(Schema.Array(Schema.Record(
  Schema.String,
  Schema.Array(Schema.Union([Schema.String, Schema.Struct({ model: Schema.String })]))
)))
export type Fallbacks = typeof Fallbacks.Type

const fallbacks = {
  fallbacks: Fallbacks,
  context_window_fallbacks: Fallbacks,
  default_fallbacks: maybe(Schema.Array(Schema.String))
}

const Config = Schema.Struct({
  model_list: maybe(Schema.Array(Deployment)),
  router_settings: maybe(Schema.Struct({
    ...fallbacks,
    routing_strategy: Text,
    model_group_alias: maybe(Schema.Record(
      Schema.String,
      Schema.Union([Schema.String, Schema.Struct({ model: Schema.String })])
    )),
    num_retries: Quantity,
    timeout: Quantity,
    stream_timeout: Quantity,
    retry_after: Quantity,
    cooldown_time: Quantity,
    disable_cooldowns: Flag
  })),
  litellm_settings: maybe(Schema.Struct({ ...fallbacks, num_retries: Quantity, request_timeout: Quantity })),
  environment_variables: maybe(Schema.Record(
    Schema.String,
    Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])
  )),
  credential_list: maybe(Schema.Array(Schema.Struct({
    credential_name: Schema.NonEmptyString,
    credential_values: Schema.Struct(credentials)
  })))
})
export type Config = typeof Config.Type

export interface ReadConfig {
  readonly config: Config
  /** The file's content without settings that are `null`. */
  readonly raw: unknown
  readonly lineOf: (path: Path) => number
}

/** Removes settings that are `null`, as an empty section is. */
const withoutNull = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (!Predicate.isReadonlyObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([, inner]) => inner !== null).map(([name, inner]) => [name, withoutNull(inner)])
  )
}

const decode = Schema.decodeUnknownResult(Config, { errors: "all" })

/** Decodes a configuration. The error lists every mistake with its line and path, but no values. */
export const parse = (file: string, text: string): Effect.Effect<ReadConfig, CatalogueFile.CatalogueInvalid> =>
  Effect.fromResult(Result.gen(function*() {
    const { lineOf, value } = yield* YamlText.read(text)
    const raw = withoutNull(value ?? {})
    const config = yield* Result.mapError(
      decode(raw),
      ({ issue }) =>
        SchemaErrors.all(issue, raw).map((error) => ({
          line: lineOf(error.path),
          message: SchemaErrors.formatError(error, "the file")
        }))
    )
    return { config, raw, lineOf }
  })).pipe(
    Effect.mapError(([first = { line: 1, message: "it is not valid YAML" }, ...others]) =>
      new CatalogueFile.CatalogueInvalid({ file, mistakes: [first, ...others] })
    )
  )

/** The paths of settings that decoding left out. An object that was left out whole has one path. */
export const unknownIn = (raw: unknown, decoded: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (Array.isArray(raw) && Array.isArray(decoded)) {
    return raw.flatMap((item, index) => unknownIn(item, decoded[index], [...path, index]))
  }
  if (!Predicate.isReadonlyObject(raw) || !Predicate.isReadonlyObject(decoded)) return path.length === 1 ? [path] : []
  return Object.entries(raw).flatMap(([name, inner]): ReadonlyArray<Path> => {
    if (Object.hasOwn(decoded, name)) return unknownIn(inner, decoded[name], [...path, name])
    // a section that was left out whole is listed setting by setting
    return path.length === 0 ? unknownIn(inner, {}, [name]) : [[...path, name]]
  })
}
