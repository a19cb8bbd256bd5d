/** Places instructions in the course of a conversation for providers of the messages dialect that accept them. */
import type { Turn } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

/** The instructions at the front. */
export const leading = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const first = turns.findIndex(({ role }) => role !== "system")
  return first === -1 ? turns : turns.slice(0, first)
}

/**
 * Moves instructions in the course of the conversation to where Anthropic accepts them: behind messages of the user and results, before
 * the assistant or at the end. Those that have no such place go to the front.
 */
export const inLegalPlaces = (turns: ReadonlyArray<Turn>, losses: Losses): ReadonlyArray<Turn> => {
  const first = turns.findIndex(({ role }) => role !== "system")
  if (first === -1) return turns
  const ordered = turns.slice(0, first)
  let held: Array<Turn> = []
  for (const turn of turns.slice(first)) {
    if (turn.role === "system") {
      held.push(turn)
      continue
    }
    const before = ordered.at(-1)?.role
    if (turn.role === "assistant" && (before === "user" || before === "tool")) {
      ordered.push(...held)
      held = []
    }
    ordered.push(turn)
  }
  const last = ordered.at(-1)?.role
  if (last === "user" || last === "tool") return [...ordered, ...held]
  for (const { path = "" } of held) losses.warn(path, "was moved to the front")
  return [...ordered.slice(0, first), ...held, ...ordered.slice(first)]
}
