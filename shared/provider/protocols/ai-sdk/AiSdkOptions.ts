/** What the catalogue can set for the `ai-sdk` protocol. */
import { Schema } from "effect"
import { voices } from "../../../contract/operations/AudioSpeech.ts"
import { JsonObject } from "../../../contract/Fields.ts"
import * as Options from "../../call/Options.ts"

const AiSdkOptions = Schema.Struct({
  /** An installed package of AI SDK providers: `@ai-sdk/fal`. */
  package: Schema.String.check(
    Schema.isPattern(/^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/, { expected: "the name of a package" })
  ),
  /** Its function that makes a provider, where that is not to be guessed from its name: `createVertex`. */
  export: Schema.optionalKey(Schema.NonEmptyString),
  /** What that function takes beside key, URL and fetch. Texts may be `${NAME}` of an environment variable. */
  settings: Schema.optionalKey(JsonObject),
  /** Options of every call, by the name under which the package looks for them: `{ fal: { syncMode: true } }`. */
  providerOptions: Schema.optionalKey(Schema.Record(Schema.String, JsonObject)),
  /** The package's own voices for ours, where its names differ. */
  voices: Schema.optionalKey(
    Schema.Struct(Object.fromEntries(voices.map((voice) => [voice, Schema.optionalKey(Schema.NonEmptyString)])))
  ),
  /** The header in which the provider takes an idempotency key with a video, if it takes one. */
  idempotencyHeader: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9-]*$/, { expected: "the name of a header" }))
  ),
  /** Between two looks at a video. Default 5,000. */
  pollIntervalMs: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
})
export type AiSdkOptions = typeof AiSdkOptions.Type

export const optionsOf = Options.reader(AiSdkOptions)
