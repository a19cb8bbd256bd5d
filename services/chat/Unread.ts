/** Warns of the parts of a conversation that the built-in engine ignores: it is an echo, without sampling or memory. */
import type {
  ContentPart,
  Conversation,
  SamplingSetting,
  Setting
} from "../../shared/provider/dialects/conversation/Conversation.ts"
import { warnOfSummary, withoutMarks } from "../../shared/provider/dialects/conversation/Conversation.ts"
import type { Losses } from "../../shared/provider/dialects/conversation/Losses.ts"
import { lastTurnOf, readLast } from "./Text.ts"
import { namedTools } from "./ToolUse.ts"

const unread = "is not read by the built-in engine"

const samplings: ReadonlyArray<SamplingSetting> = ["temperature", "topP", "topK", "presencePenalty", "frequencyPenalty"]
const settings = ["seed", "reasoning"] as const satisfies ReadonlyArray<Setting & keyof Conversation>

const isRead = ({ type }: ContentPart): boolean => type === "text"

/** The engine reads the texts of the user's last message and of tools' results after it, and which tools were called. */
export const record = (conversation: Conversation, losses: Losses): void => {
  const { modalities, sampling = {}, tools, turns } = conversation
  withoutMarks(conversation, losses)
  for (const setting of samplings) if (sampling[setting] !== undefined) losses.warnOf(setting)
  for (const setting of settings) if (conversation[setting] !== undefined) losses.warnOf(setting)
  warnOfSummary(conversation, losses)
  if (modalities?.some((modality) => modality !== "text") === true) losses.warnOf("modalities")
  for (const { description, path = "tools" } of tools) {
    if (description !== undefined) losses.warn(path, "has a description, which the built-in engine does not read")
  }
  for (const { path = "tools" } of namedTools(tools, readLast(conversation)).slice(1)) {
    losses.warn(path, "is not called yet: the built-in engine calls one tool at a time")
  }
  const last = lastTurnOf(turns)
  for (const [index, { content, failed, path, role, toolCalls }] of turns.entries()) {
    // a turn without a path does not come from the client
    if (path === undefined) continue
    const isHeard = index === last || (index > last && role === "tool")
    if (isHeard) { for (const part of content) if (!isRead(part)) losses.warn(part.path ?? path, unread) }
    else if (content.length > 0 || index < last) losses.warn(path, unread)
    if (isHeard && (failed === true || toolCalls.length > 0)) losses.warn(path, "is read as a text only")
  }
}
