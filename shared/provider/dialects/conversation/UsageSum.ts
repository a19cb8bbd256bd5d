/** Adds up the usage of several answers. */
import type { Usage } from "../../../contract/Usage.ts"

export const none: Usage = { inputTokens: 0, outputTokens: 0 }

/** A count that is missing in both stays missing. */
export const sum = (one: Usage | undefined, other: Usage): Usage => {
  if (one === undefined) return other
  const added: { -readonly [K in keyof Usage]: Usage[K] } = {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens
  }
  for (const kind of ["cachedTokens", "cacheWriteTokens", "reasoningTokens"] as const) {
    if (one[kind] !== undefined || other[kind] !== undefined) added[kind] = (one[kind] ?? 0) + (other[kind] ?? 0)
  }
  return added
}
