/** The catalogue's settings of guardrails. A guardrail is an HTTP service of the operator that checks requests and answers. */
import { Schema, Struct } from "effect"
import { integer } from "../contract/Fields.ts"
import type { Workload } from "../contract/Operation.ts"
import type { Finding } from "./Inconsistencies.ts"
import type { Model } from "./Model.ts"
import { HttpUrl } from "./Provider.ts"
import * as SecretReference from "./SecretReference.ts"

/** What a guardrail can check. */
export const directions = ["request", "answer"] as const
export type Direction = typeof directions[number]

const Window = Schema.Struct({
  /** How many characters of a stream are held back and checked at a time, 1 to 100,000. Default 1,000. */
  characters: integer(1, 100_000),
  /** How many of the preceding characters are included in each check, 0 to 100,000. Default 200. */
  overlap: integer(0, 100_000)
})

/** A name of a header that the gateway does not set itself. */
const HeaderName = Schema.String.check(
  Schema.isPattern(/^(?!(?:content-|host$|accept$|connection$|traceparent$|transfer-))[a-z0-9-]+$/u, {
    expected: "a header in lower case that the gateway does not set itself"
  })
)

/** The settings for all models, or for one model, whose fields replace those for all. */
export const GuardrailSettings = Schema.Struct({
  url: Schema.optionalKey(HttpUrl),
  /** What the guardrail checks. Default: both. Empty: nothing. */
  checks: Schema.optionalKey(Schema.Array(Schema.Literals(directions))),
  /** Whether a request or answer that cannot be checked passes (`open`) or is refused (`closed`). Default `closed`. */
  onUnreachable: Schema.optionalKey(Schema.Literals(["open", "closed"])),
  /** How long one check may take, including the wait for its turn, 1 to 60,000 ms. Default 2,000. */
  timeoutMs: Schema.optionalKey(integer(1, 60_000)),
  /** Concurrent checks of a worker process, 1 to 10,000. Default 64. */
  concurrency: Schema.optionalKey(integer(1, 10_000)),
  window: Schema.optionalKey(Window.mapFields(Struct.map(Schema.optionalKey))),
  /** A reference to the secret that is sent as `Authorization: Bearer …`. */
  secret: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text) => SecretReference.parse(text) !== undefined, { expected: SecretReference.expected })
    )
  ),
  /** Further headers. A value may be a reference to a secret. */
  headers: Schema.optionalKey(Schema.Record(HeaderName, Schema.NonEmptyString))
})
export type GuardrailSettings = typeof GuardrailSettings.Type

/** The guardrail of a model, with the defaults filled in. */
export interface Guardrail extends Required<Omit<GuardrailSettings, "secret" | "window">> {
  readonly secret?: string
  readonly window: typeof Window.Type
}

const defaults = {
  checks: directions,
  onUnreachable: "closed",
  timeoutMs: 2_000,
  concurrency: 64,
  headers: {}
} satisfies Partial<Guardrail>

const defaultWindow = { characters: 1_000, overlap: 200 } satisfies Guardrail["window"]

/** The guardrail of each model that has one. */
export const guardrailsOf = (
  models: ReadonlyMap<string, Pick<Model, "guardrail">>,
  common: GuardrailSettings | undefined
): ReadonlyMap<string, Guardrail> =>
  new Map(
    [...models].flatMap(([name, { guardrail: own }]) => {
      const { url, ...settings } = { ...defaults, ...common, ...own }
      const window = { ...defaultWindow, ...common?.window, ...own?.window }
      return url === undefined || settings.checks.length === 0 ? [] : [[name, { ...settings, url, window }] as const]
    })
  )

/** The workloads none of whose answers can be checked: pictures and videos. Not speech, because transcriptions are text. */
const unreadable: ReadonlySet<Workload> = new Set(["images", "video"])

/** Finds guardrails without a URL, and guardrails that would refuse every request of a model. */
export const findGuardrailMistakes = (
  models: ReadonlyMap<string, Pick<Model, "guardrail" | "workload">>,
  common: GuardrailSettings | undefined
): ReadonlyArray<Finding> => {
  const guardrails = guardrailsOf(models, common)
  const withoutUrl = common !== undefined && common.url === undefined
    ? [{ path: ["guardrail", "url"], message: "is required" }]
    : [...models].flatMap(([name, { guardrail }]): ReadonlyArray<Finding> =>
      guardrail !== undefined && guardrail.checks?.length !== 0 && !guardrails.has(name) && common === undefined
        ? [{ path: ["models", name, "guardrail", "url"], message: "is required: there is no guardrail for all models" }]
        : []
    )
  return [
    ...withoutUrl,
    ...[...guardrails].flatMap(([name, { checks, onUnreachable }]): ReadonlyArray<Finding> => {
      const workload = models.get(name)?.workload
      const isMistake = workload !== undefined && unreadable.has(workload) && onUnreachable === "closed" &&
        checks.includes("answer")
      return !isMistake ? [] : [{
        path: ["models", name, "guardrail"],
        message: `must have \`checks: [request]\`: a guardrail cannot read answers of the workload ${workload}, ` +
          "so that it would refuse them all"
      }]
    })
  ]
}
