/** The texts of a conversation. */
import type { Conversation, Turn } from "../../shared/provider/dialects/conversation/Conversation.ts"
import { slices } from "../../shared/text/Slices.ts"

/** The text up to `max` characters, cut between words if possible, with an ellipsis if it was cut. */
export const clip = (text: string, max: number): string => {
  if (text.length <= max) return text
  const [head = ""] = slices(text.slice(0, max), max - 1)
  return `${head.trimEnd()}…`
}

export const textOf = (turn: Turn): string =>
  turn.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n").toWellFormed()

/** Maximum number of characters of a message that the engine repeats. */
const mostRepeated = 2_000

/** Maximum number of characters of a text in which the engine looks for the names of tools. */
const mostSearched = 10_000

/** The last message of the user, and the results of tools since. */
export interface Last {
  readonly said: string
  /** The last text of the message that is the user's own: agents put theirs before and after it, in tags such as `<system-reminder>`. */
  readonly asked: string
  /** The number of images and files in the message, which this engine cannot read. */
  readonly unread: number
  readonly results: ReadonlyArray<{ readonly tool: string; readonly text: string }>
}

/** The index of the user's last message. */
export const lastTurnOf = (turns: Conversation["turns"]): number =>
  Math.max(0, turns.findLastIndex(({ role }) => role === "user"))

const block = /<([a-z][\w-]*)>.*?<\/\1>/gis

const askedIn = ({ content }: Turn): string =>
  content.flatMap((part) => part.type === "text" ? [part.text.slice(0, mostSearched).replace(block, " ").trim()] : [])
    .findLast((text) => text !== "") ?? ""

export const readLast = ({ turns }: Conversation): Last => {
  const at = lastTurnOf(turns)
  const turn = turns[at]
  const tools = new Map(turns.flatMap(({ toolCalls }) => toolCalls.map(({ id, name }) => [id, name])))
  const read = (turn: Turn) => clip(textOf(turn).trim(), mostRepeated)
  return {
    said: turn === undefined ? "" : read(turn),
    asked: turn === undefined ? "" : askedIn(turn),
    unread: turn?.content.filter(({ type }) => type === "image" || type === "file").length ?? 0,
    results: turns.slice(at + 1).filter(({ role }) => role === "tool")
      .map((result) => ({ tool: tools.get(result.toolCallId ?? "") ?? "the tool", text: read(result) }))
  }
}
