/** What in a catalogue works, but surely not as it was meant. */
import { Effect } from "effect"
import { defaultTimeouts, type Provider, type Snapshot } from "./Catalogue.ts"
import type { Remark } from "./Inconsistencies.ts"
import type { Model } from "./Model.ts"
import * as SecretReference from "./SecretReference.ts"

/** What is around the catalogue on the machine where it is looked at. */
export interface Surroundings {
  readonly hasVariable: (name: string) => boolean
  readonly hasFile: (path: string) => Effect.Effect<boolean>
  /** Whether such an npm package is installed. */
  readonly hasPackage: (name: string) => boolean
}

/** In the order of the file's parts. */
export const lint = Effect.fn("Lint.lint")(function*(snapshot: Snapshot, surroundings: Surroundings) {
  const remarks: Array<Remark> = []
  for (const [name, provider] of snapshot.providers) {
    const message = yield* secretRemark(provider, surroundings)
    if (message !== undefined) remarks.push({ path: ["providers", name, "apiKey"], message })
    remarks.push(...packageRemarks(name, provider, surroundings))
    remarks.push(...limitRemarks(name, provider))
  }
  remarks.push(...unusedProviders(snapshot))
  for (const [name, model] of snapshot.models) remarks.push(...fallbackRemarks(snapshot, name, model))
  return remarks
})

const secretRemark = ({ apiKey }: Provider, surroundings: Surroundings): Effect.Effect<string | undefined> => {
  if (apiKey === undefined) return Effect.undefined
  const reference = SecretReference.parse(apiKey)
  if (reference === undefined) return Effect.undefined
  return reference.kind === "variable"
    ? Effect.succeed(surroundings.hasVariable(reference.name) ? undefined : `${reference.name} is not set here`)
    : Effect.map(
      surroundings.hasFile(reference.path),
      (found) => found ? undefined : `${reference.path} cannot be read here`
    )
}

const packageRemarks = (
  name: string,
  { options, protocol }: Provider,
  { hasPackage }: Surroundings
): ReadonlyArray<Remark> => {
  const wanted = protocol === "ai-sdk" ? options?.["package"] : undefined
  if (typeof wanted !== "string" || hasPackage(wanted)) return []
  const message = `'${wanted}' is not installed here: npm install --save-exact ${wanted}`
  return [{ path: ["providers", name, "options", "package"], message }]
}

/** Limits that another one keeps from ever being reached. */
const limitRemarks = (name: string, { limits = {}, timeouts }: Provider): ReadonlyArray<Remark> => {
  const { concurrency, requestsPerMinute, tokensPerMinute } = limits
  const remarks: Array<Remark> = []
  if (requestsPerMinute !== undefined && tokensPerMinute !== undefined && requestsPerMinute >= tokensPerMinute) {
    remarks.push({
      path: ["providers", name, "limits", "requestsPerMinute"],
      message: `can never apply: no request takes less than one of the ${tokensPerMinute} tokens per minute`
    })
  }
  // a call cannot last longer than its timeout, so there are never more at once than begin within that time
  const totalMinutes = Math.ceil((timeouts?.totalMs ?? defaultTimeouts.totalMs) / 60_000)
  if (concurrency !== undefined && requestsPerMinute !== undefined && concurrency > requestsPerMinute * totalMinutes) {
    remarks.push({
      path: ["providers", name, "limits", "concurrency"],
      message:
        `can never apply: at ${requestsPerMinute} requests per minute and at most ${totalMinutes} minutes each, ` +
        `there are never more than ${requestsPerMinute * totalMinutes} at once`
    })
  }
  return remarks
}

const unusedProviders = ({ models, providers }: Snapshot): ReadonlyArray<Remark> => {
  const used = new Set([...models.values()].flatMap(({ targets }) => targets.map(({ provider }) => provider)))
  return [...providers.keys()]
    .filter((name) => !used.has(name))
    .map((name) => ({ path: ["providers", name], message: "no model uses it" }))
}

/** Fallbacks that add no target to those tried before them. */
const fallbackRemarks = ({ models }: Snapshot, name: string, model: Model): ReadonlyArray<Remark> => {
  const tried = new Set<string>()
  /** Whether this model has a target that was not yet tried. */
  const adds = (name: string, { fallbacks = [], targets }: Model): boolean => {
    const before = tried.size
    for (const target of targets) tried.add(JSON.stringify([target.provider, target.model ?? name]))
    for (const fallback of fallbacks) {
      const other = models.get(fallback)
      if (other !== undefined) adds(fallback, other)
    }
    return tried.size > before
  }
  adds(name, { ...model, fallbacks: [] })
  return (model.fallbacks ?? []).flatMap((fallback, index) => {
    const other = models.get(fallback)
    return other === undefined || adds(fallback, other)
      ? []
      : [{
        path: ["models", name, "fallbacks", index],
        message: `is never reached: every target of '${fallback}' has been tried before it`
      }]
  })
}
