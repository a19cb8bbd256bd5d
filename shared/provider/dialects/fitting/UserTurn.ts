/** A message besides the instructions, for providers that keep those apart and reject a conversation without one. */
import type { Turn } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

/** The turns; of instructions alone, which OpenAI takes, the last becomes the user's message. */
export const withUserTurn = (turns: ReadonlyArray<Turn>, losses: Losses): ReadonlyArray<Turn> => {
  const last = turns.at(-1)
  if (last === undefined || turns.some(({ role }) => role !== "system")) return turns
  losses.warn(last.path ?? "", "became a message of the user, since this model needs one")
  return [...turns.slice(0, -1), { ...last, role: "user" }]
}
