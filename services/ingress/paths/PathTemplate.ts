/** Matches paths with templates such as `/v1beta/models/{model}:generateContent`, to find the operation and the model. */
import { Result } from "effect"
import type { Operation } from "../../../shared/contract/Operation.ts"

const placeholder = "{model}"

/** The operations behind one path of the router. */
export interface RouteGroup {
  /** The router's path: exact, or with a wildcard at the end if the path contains a model. */
  readonly path: `/${string}`
  readonly operations: ReadonlyArray<{ readonly operation: Operation; readonly suffix: string | undefined }>
}

/** One group for each distinct router path. Templates with the same prefix share a group. */
export const groups = (operations: ReadonlyArray<Operation>): ReadonlyArray<RouteGroup> => {
  const byPath = new Map<`/${string}`, Array<RouteGroup["operations"][number]>>()
  for (const operation of operations) {
    for (const template of operation.paths) {
      const at = template.indexOf(placeholder)
      const path: `/${string}` = at === -1 ? template : `/${template.slice(1, at)}*`
      const suffix = at === -1 ? undefined : template.slice(at + placeholder.length)
      const group = byPath.get(path) ?? []
      group.push({ operation, suffix })
      byPath.set(path, group)
    }
  }
  return [...byPath].map(([path, group]) => ({ path, operations: group }))
}

export interface Match {
  readonly operation: Operation
  /** The model in the path, if any. */
  readonly model: string | undefined
}

/** Matches the rest of a path after a group's prefix. The model's name may contain slashes, escaped or not. */
export const match = (group: RouteGroup, rest: string): Match | undefined => {
  for (const { operation, suffix } of group.operations) {
    if (suffix === undefined) return { operation, model: undefined }
    if (rest.endsWith(suffix) && rest.length > suffix.length) {
      return { operation, model: decodePath(rest.slice(0, rest.length - suffix.length)) }
    }
  }
  return undefined
}

export const decodePath = (text: string): string =>
  Result.getOrElse(Result.try(() => decodeURIComponent(text)), () => text)
