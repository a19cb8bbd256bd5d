/** What is wrong with a catalogue whose every field is right by itself: names that lead nowhere, and values at odds. */
import type { Provider, Snapshot } from "./Catalogue.ts"
import type { Model } from "./Model.ts"

/** Something about a place of the file. */
export interface Remark {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

/** The names of the models on the way from a model's fallback back to it; `undefined` where there is no such way. */
const wayBack = (
  models: ReadonlyMap<string, Pick<Model, "fallbacks">>,
  from: string,
  to: string
): ReadonlyArray<string> | undefined => {
  const seen = new Set<string>()
  const search = (name: string): ReadonlyArray<string> | undefined => {
    if (name === to) return [name]
    if (seen.has(name)) return undefined
    seen.add(name)
    for (const next of models.get(name)?.fallbacks ?? []) {
      const way = search(next)
      if (way !== undefined) return [name, ...way]
    }
    return undefined
  }
  return search(from)
}

/** Protocols that need no `baseUrl`. */
const knowsItsUrl: ReadonlyArray<Provider["protocol"]> = ["local", "ai-sdk"]

export const inconsistencies = ({ models, providers }: Snapshot): ReadonlyArray<Remark> => {
  const mistakes: Array<Remark> = []
  const mistake = (message: string, ...path: ReadonlyArray<PropertyKey>) => mistakes.push({ path, message })
  for (const [name, { baseUrl, breaker, options, protocol }] of providers) {
    if (!knowsItsUrl.includes(protocol) && baseUrl === undefined) mistake("is required", "providers", name, "baseUrl")
    if (protocol === "ai-sdk" && typeof options?.["package"] !== "string") {
      mistake("is required: the name of an installed package", "providers", name, "options", "package")
    }
    if (breaker !== undefined && breaker.minimumCalls > breaker.lastCalls) {
      const message = `${breaker.minimumCalls} are more than the ${breaker.lastCalls} calls that are looked back on`
      mistake(message, "providers", name, "breaker", "minimumCalls")
    }
  }
  for (const [name, model] of models) {
    for (const [index, { provider }] of model.targets.entries()) {
      if (!providers.has(provider)) {
        mistake(`there is no provider '${provider}'`, "models", name, "targets", index, "provider")
      }
    }
  }
  return [...mistakes, ...fallbackMistakes(models)]
}

/** Of models alone: fallbacks that are none, are of another workload, or lead back. */
export const fallbackMistakes = (
  models: ReadonlyMap<string, Pick<Model, "workload" | "fallbacks">>
): ReadonlyArray<Remark> => {
  const mistakes: Array<Remark> = []
  const mistake = (message: string, ...path: ReadonlyArray<PropertyKey>) => mistakes.push({ path, message })
  for (const [name, model] of models) {
    for (const [index, fallback] of (model.fallbacks ?? []).entries()) {
      const path = ["models", name, "fallbacks", index] as const
      const other = models.get(fallback)
      const way = wayBack(models, fallback, name)
      if (other === undefined) mistake(`there is no model '${fallback}'`, ...path)
      else if (other.workload !== model.workload) {
        mistake(`'${fallback}' is of another workload, ${other.workload}`, ...path)
      } else if (way !== undefined) mistake(`leads back: ${[name, ...way].join(" → ")}`, ...path)
    }
  }
  return mistakes
}
