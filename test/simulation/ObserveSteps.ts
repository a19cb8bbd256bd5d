/**
 * Reports every step of a job's state machine to `globalThis.onJobStep`. Preloaded (`node --import`), because a module's exports
 * cannot be replaced: it renames the shipped `step` when its file is read, and wraps it.
 */
import { registerHooks } from "node:module"

const file = "/shared/bus/protocol/JobState.ts"
const before = "export const step ="

const wrapper = `
export const step = (state, event) => {
  const made = unobserved(state, event)
  globalThis.onJobStep?.(state, event, made)
  return made
}
`

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context)
    if (!url.endsWith(file)) return loaded
    const source = loaded.source?.toString() ?? ""
    if (!source.includes(before)) throw new Error(`${file} has no "${before}" any more`)
    return { ...loaded, source: source.replace(before, "const unobserved =") + wrapper }
  }
})
