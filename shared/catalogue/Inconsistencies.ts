/** Mistakes between valid fields of a catalogue: names that do not exist, and values that contradict each other. */
import type { Model } from "./Model.ts"
import type { Provider } from "./Provider.ts"

/** A message about a place in the file. */
export interface Finding {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

type Fallbacks = Pick<Model, "workload" | "fallbacks">

/** The path of fallbacks from one model to another; `undefined` if there is none. */
const pathBetween = (
  models: ReadonlyMap<string, Fallbacks>,
  from: string,
  to: string
): ReadonlyArray<string> | undefined => {
  const seen = new Set<string>()
  const search = (name: string): ReadonlyArray<string> | undefined => {
    if (name === to) return [name]
    if (seen.has(name)) return undefined
    seen.add(name)
    for (const next of models.get(name)?.fallbacks ?? []) {
      const path = search(next)
      if (path !== undefined) return [name, ...path]
    }
    return undefined
  }
  return search(from)
}

const withoutBaseUrl: ReadonlyArray<Provider["protocol"]> = ["local", "ai-sdk"]

export const findInconsistencies = ({ models, providers }: {
  readonly models: ReadonlyMap<string, Model>
  readonly providers: ReadonlyMap<string, Provider>
}): ReadonlyArray<Finding> => {
  const mistakes: Array<Finding> = []
  const mistake = (message: string, ...path: ReadonlyArray<PropertyKey>) => mistakes.push({ path, message })
  for (const [name, { baseUrl, breaker, idempotent, options, protocol, redispatch }] of providers) {
    if (!withoutBaseUrl.includes(protocol) && baseUrl === undefined) {
      mistake("is required", "providers", name, "baseUrl")
    }
    if (protocol === "ai-sdk" && typeof options?.["package"] !== "string") {
      mistake("is required: the name of an installed package", "providers", name, "options", "package")
    }
    if (idempotent !== undefined && redispatch !== undefined) {
      mistake("remove it: `idempotent` replaces it", "providers", name, "redispatch")
    }
    if (breaker !== undefined && breaker.minimumCalls > breaker.lastCalls) {
      mistake(`must be at most lastCalls, ${breaker.lastCalls}`, "providers", name, "breaker", "minimumCalls")
    }
  }
  for (const [name, model] of models) {
    if (model.maxVideos !== undefined && model.workload !== "video") {
      mistake("remove it: only models of the workload video have it", "models", name, "maxVideos")
    }
    for (const [index, { provider }] of model.targets.entries()) {
      if (!providers.has(provider)) {
        mistake(`there is no provider '${provider}'`, "models", name, "targets", index, "provider")
      }
    }
  }
  return [...mistakes, ...findFallbackMistakes(models)]
}

/** Fallbacks that do not exist, have another workload, or form a cycle. */
export const findFallbackMistakes = (models: ReadonlyMap<string, Fallbacks>): ReadonlyArray<Finding> => {
  const mistakes: Array<Finding> = []
  for (const [name, model] of models) {
    for (const [index, fallback] of (model.fallbacks ?? []).entries()) {
      const mistake = (message: string) => mistakes.push({ path: ["models", name, "fallbacks", index], message })
      const other = models.get(fallback)
      const cycle = pathBetween(models, fallback, name)
      if (other === undefined) mistake(`there is no model '${fallback}'`)
      else if (other.workload !== model.workload) {
        mistake(`'${fallback}' must have the same workload, ${model.workload}, not ${other.workload}`)
      } else if (cycle !== undefined) mistake(`forms a cycle: ${[name, ...cycle].join(" → ")}`)
    }
  }
  return mistakes
}
