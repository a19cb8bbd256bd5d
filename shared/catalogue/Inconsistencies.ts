/** Finds mistakes between valid fields of a catalogue: names that do not exist, and values that contradict each other. */
import type { Model } from "./Model.ts"
import type { Provider } from "./Provider.ts"

/** A message about a place in the file. */
export interface Finding {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

type References = Pick<Model, "workload" | "fallbacks" | "shadow">

/** The path of fallbacks from one model to another; `undefined` if there is none. */
const pathBetween = (
  models: ReadonlyMap<string, References>,
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

/** The path of an operation at the end of a `baseUrl`, as vendors show it in their examples. */
const operationAtEnd = /\/(?:chat\/completions|completions|responses|messages|embeddings|rerank|models\/[^/]*:\w+)\/?$/

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
    const operation = operationAtEnd.exec(URL.parse(baseUrl ?? "")?.pathname ?? "")?.[0]
    if (operation !== undefined) {
      mistake(
        `must end before '${operation}', the path of an operation, which the gateway adds`,
        "providers",
        name,
        "baseUrl"
      )
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
  return [...mistakes, ...findModelMistakes(models)]
}

/** Finds fallbacks and shadows that do not exist or have another workload, and cycles of fallbacks. */
export const findModelMistakes = (models: ReadonlyMap<string, References>): ReadonlyArray<Finding> => {
  const mistakes: Array<Finding> = []
  for (const [name, { fallbacks = [], shadow, workload }] of models) {
    /** Whether the other model exists and has the same workload; records the mistake if not. */
    const isUsable = (other: string, path: Finding["path"]): boolean => {
      const found = models.get(other)
      if (found?.workload === workload) return true
      const message = found === undefined
        ? `there is no model '${other}'`
        : `'${other}' must have the same workload, ${workload}, not ${found.workload}`
      mistakes.push({ path, message })
      return false
    }
    for (const [index, fallback] of fallbacks.entries()) {
      const path = ["models", name, "fallbacks", index]
      const cycle = isUsable(fallback, path) ? pathBetween(models, fallback, name) : undefined
      if (cycle !== undefined) mistakes.push({ path, message: `forms a cycle: ${[name, ...cycle].join(" → ")}` })
    }
    if (shadow === undefined) continue
    const path = ["models", name, "shadow"]
    if (workload === "video") mistakes.push({ path, message: "remove it: videos have no shadow" })
    else isUsable(shadow.model, [...path, "model"])
  }
  return mistakes
}
