/** What the generations of Claude accept in requests, by the model's name at any provider. */

/** `one`: a temperature or a probability, not both. `none`: only the defaults. */
export type SamplingSupport = "all" | "one" | "none"

export interface ModelRules {
  readonly sampling: SamplingSupport
  /** Whether `messages` may hold instructions: messages of the role `system`. */
  readonly laterSystem: boolean
}

/** The first generations, and models of other vendors that speak this dialect. */
export const open: ModelRules = { sampling: "all", laterSystem: false }
const oneOfTwo: ModelRules = { sampling: "one", laterSystem: false }
const unsampled: ModelRules = { sampling: "none", laterSystem: false }
const newest: ModelRules = { sampling: "none", laterSystem: true }

/**
 * The first match counts. Sources: the models' table of `@ai-sdk/anthropic` 4.0 for sampling, Anthropic's page about messages of the role
 * `system` for those, and the model pages of 4.1 to 4.6, which accept a temperature or `top_p`.
 */
const rules: ReadonlyArray<readonly [RegExp, ModelRules]> = [
  [/claude-(?:instant|v?[123])(?!\d)/, open],
  [/claude-(?:sonnet|opus)-4(?:[-@](?:0|\d{8}|latest)|$)/, open],
  [/claude-(?:opus-4-1|(?:opus|sonnet|haiku)-4-[56])(?!\d)/, oneOfTwo],
  [/claude-opus-4-7(?!\d)|claude-sonnet-5(?!-?\d{1,2}(?!\d))|claude-mythos-preview/, unsampled],
  [/claude-/, newest]
]

/** `undefined` for names that are not Claude's. */
export const rulesOf = (model: string): ModelRules | undefined => {
  const name = model.toLowerCase().replaceAll(/(?<=\d)\.(?=\d)/g, "-")
  return rules.find(([pattern]) => pattern.test(name))?.[1]
}
