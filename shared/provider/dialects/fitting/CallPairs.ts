/** Finds tool calls without a result, and results without their call, which most providers reject. */
import type { Conversation } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

/** Records them: as refusals for a provider that rejects them, otherwise as warnings. */
export const record = ({ turns }: Conversation, areRejected: boolean, losses: Losses): void => {
  const note = (path: string, what: string) => areRejected ? losses.refuse(path, what) : losses.warn(path, what)
  /** The calls without a result so far, with their paths. */
  let open = new Map<string, string>()
  for (const { path = "", role, toolCallId = "", toolCalls } of turns) {
    if (role === "tool") {
      if (!open.delete(toolCallId)) note(path, "answers no tool call right before it")
      continue
    }
    // instructions may come between calls and results
    if (role === "system") continue
    for (const place of open.values()) note(place, "is a tool call without a result")
    open = new Map(toolCalls.map((call) => [call.id, call.path ?? path]))
  }
}
