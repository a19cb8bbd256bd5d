/** The catalogue's options for the `ai-sdk` protocol. */
import { Schema } from "effect"
import { JsonObject } from "../../../contract/Fields.ts"
import * as Options from "../../call/Options.ts"

export const AiSdkOptions = Schema.Struct({
  /** An installed package of AI SDK providers: `@ai-sdk/fal`. */
  package: Schema.String.check(
    Schema.isPattern(/^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/, { expected: "the name of a package" })
  ),
  /** The function that makes a provider, if its name does not follow from the package's: `createVertex`. */
  export: Schema.optionalKey(Schema.NonEmptyString),
  /** Further arguments of that function, besides key, URL and fetch. Texts may be references such as `${NAME}`. */
  settings: Schema.optionalKey(JsonObject),
  /** Options of every call, by the name under which the package reads them: `{ fal: { syncMode: true } }`. */
  providerOptions: Schema.optionalKey(Schema.Record(Schema.String, JsonObject)),
  /** The package's name for each of the API's voices, if it differs. */
  voices: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.NonEmptyString)
  ),
  /** The provider's header for the idempotency key of a video. Default: none. */
  idempotencyHeader: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9-]*$/, { expected: "the name of a header" }))
  ),
  /** The time between two polls of a video, in milliseconds. Default 5,000. */
  pollIntervalMs: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
})
export type AiSdkOptions = typeof AiSdkOptions.Type

export const optionsOf = Options.reader(AiSdkOptions)
