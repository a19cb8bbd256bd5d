/** Lists the references to secrets that the models of a catalogue need, with their places in the file. */
import { Predicate } from "effect"
import type { Snapshot } from "./Catalogue.ts"
import { isOff, type Model, targetsOf } from "./Model.ts"
import type { Provider } from "./Provider.ts"
import * as SecretReference from "./SecretReference.ts"

export interface SecretUse {
  readonly path: ReadonlyArray<PropertyKey>
  readonly reference: string
}

/** The references in a value, at any depth. */
function* within(path: ReadonlyArray<PropertyKey>, value: unknown): Generator<SecretUse> {
  if (typeof value === "string") {
    if (SecretReference.parse(value) !== undefined) yield { path, reference: value }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* within([...path, index], item)
  } else if (Predicate.isReadonlyObject(value)) {
    for (const [name, inner] of Object.entries(value)) yield* within([...path, name], inner)
  }
}

/** The references of a provider: its key, and those among the settings of its package. */
export const ofProvider = (name: string, { apiKey, options }: Provider): ReadonlyArray<SecretUse> => [
  ...within(["providers", name, "apiKey"], apiKey),
  ...within(["providers", name, "options", "settings"], options?.["settings"])
]

/** The references of a model's guardrail, in its own settings or in those for all models. */
export const ofGuardrail = ({ guardrails, models }: Snapshot, name: string): ReadonlyArray<SecretUse> => {
  const guardrail = guardrails?.get(name)
  if (guardrail === undefined) return []
  const own = models.get(name)?.guardrail
  const path = (
    field: "headers" | "secret"
  ) => [...(own?.[field] === undefined ? [] : ["models", name]), "guardrail", field]
  return [...within(path("secret"), guardrail.secret), ...within(path("headers"), guardrail.headers)]
}

/** The references that these models need, each place once. */
export const ofModels = (snapshot: Snapshot, serves: (model: Model) => boolean): ReadonlyArray<SecretUse> => {
  const { models, providers } = snapshot
  const served = [...models].filter(([_, model]) => serves(model)).map(([name]) => name)
  const used = new Set(
    served.flatMap((name) =>
      [...targetsOf(models, name)].flatMap(({ model, target }) => {
        const { provider } = target
        return isOff(providers.get(provider), model, target) ? [] : [provider]
      })
    )
  )
  const all = [
    ...[...providers].flatMap(([name, provider]) => used.has(name) ? ofProvider(name, provider) : []),
    ...served.flatMap((name) => ofGuardrail(snapshot, name))
  ]
  return [...new Map(all.map((use) => [JSON.stringify(use.path), use])).values()]
}
