/** Adds up the usage of several answers. */
import { Struct } from "effect"
import { Usage } from "./Usage.ts"

export const none: Usage = { inputTokens: 0, outputTokens: 0 }

const units = Struct.keys(Usage.fields)

/** The sum of two usages. A count that is missing in both stays missing. */
export const sum = (one: Usage | undefined, other: Usage): Usage => {
  if (one === undefined) return other
  const added: { -readonly [K in keyof Usage]: Usage[K] } = { ...one }
  for (const unit of units) {
    const count = other[unit]
    if (count !== undefined) added[unit] = (one[unit] ?? 0) + count
  }
  return added
}
