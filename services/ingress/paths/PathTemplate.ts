/** Matches paths with templates such as `/v1beta/models/{model}:generateContent`, to find the operation and the model. */
import { Result } from "effect"
import type { Operation } from "../../../shared/contract/Operation.ts"

const placeholder = "{model}"

export interface Match {
  readonly operation: Operation
  /** The model in the path, if any. */
  readonly model: string | undefined
  /** The operation's path that it matches. */
  readonly template: string
}

/** Makes a function that finds what a path asks for. A model's name in a path may contain slashes, escaped or not. */
export const matcher = (operations: ReadonlyArray<Operation>): (path: string) => Match | undefined => {
  const exact = new Map<string, Match>()
  const withModel: Array<Match & { readonly start: string; readonly suffix: string }> = []
  for (const operation of operations) {
    for (const template of operation.paths) {
      const at = template.indexOf(placeholder)
      const match = { operation, model: undefined, template }
      if (at === -1) exact.set(template, match)
      else withModel.push({ ...match, start: template.slice(0, at), suffix: template.slice(at + placeholder.length) })
    }
  }
  return (path) => {
    const found = exact.get(path)
    if (found !== undefined) return found
    for (const { operation, start, suffix, template } of withModel) {
      if (path.length > start.length + suffix.length && path.startsWith(start) && path.endsWith(suffix)) {
        return { operation, model: decodePath(path.slice(start.length, path.length - suffix.length)), template }
      }
    }
    return undefined
  }
}

export const decodePath = (text: string): string =>
  Result.getOrElse(Result.try(() => decodeURIComponent(text)), () => text)
