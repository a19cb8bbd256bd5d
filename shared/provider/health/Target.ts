/** A target, which is a model at a provider: its key, and whether the catalogue has it. */
import type { Snapshot } from "../../catalogue/Catalogue.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

export interface Target {
  /** The same for a model at a provider across changes of the catalogue. */
  readonly key: string
  readonly endpoint: Endpoint
}

/** See `Target`. */
export const keyOf = (provider: string, model: string): string => `${provider}\0${model}`

/** The keys of all targets of each catalogue, made on first use. */
const targets = new WeakMap<Snapshot, ReadonlySet<string>>()

/** Whether the target with this key is one of a model's. */
export const isTarget = (snapshot: Snapshot, key: string): boolean => {
  let keys = targets.get(snapshot)
  if (keys === undefined) {
    const all = [...snapshot.models].flatMap(([name, model]) => model.targets.map((target) => ({ name, ...target })))
    targets.set(snapshot, keys = new Set(all.map(({ model, name, provider }) => keyOf(provider, model ?? name))))
  }
  return keys.has(key)
}
