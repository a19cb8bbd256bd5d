/** The texts of a conversation: what its turns say, and how they are cut. */
import type { Conversation, Turn } from "../../shared/provider/dialects/conversation/Conversation.ts"
import { slices } from "../../shared/text/Slices.ts"

// One language for all, so that the answer does not depend on the machine's locale.
const segmenter = new Intl.Segmenter("en", { granularity: "sentence" })

/** What marks a line as heading, list item or quotation in Markdown. */
const lineMarker = /^\s*(?:#{1,6}|[-*+•>]|\d{1,3}[.)])\s+/u

/** The sentences of a text, trimmed, without line markers, in their order. No empty ones. */
export const splitSentences = (text: string): ReadonlyArray<string> =>
  Array.from(segmenter.segment(text), ({ segment }) => segment.replace(lineMarker, "").replace(/\s+/gu, " ").trim())
    .filter((sentence) => sentence !== "")

/** The text up to `max` characters, cut between words where it can, with an ellipsis where something is left out. */
export const clip = (text: string, max: number): string => {
  if (text.length <= max) return text
  const [head = ""] = slices(text.slice(0, max), max - 1)
  return `${head.trimEnd()}…`
}

export const textOf = (turn: Turn): string =>
  turn.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n").toWellFormed()

/** The most that is repeated of one message, in characters. */
const mostRepeated = 2_000

/** What the last message of the user says, and what the tools have returned since. */
export interface Last {
  readonly said: string
  /** What came with the message that this engine cannot read. */
  readonly unread: string
  readonly results: ReadonlyArray<{ readonly tool: string; readonly text: string }>
}

export const readLast = ({ turns }: Conversation): Last => {
  const user = turns.findLastIndex(({ role }) => role === "user")
  const at = user === -1 ? turns.length - 1 : user
  const turn = turns[at]
  const tools = new Map(turns.flatMap(({ toolCalls }) => toolCalls.map(({ id, name }) => [id, name])))
  return {
    said: turn === undefined ? "" : clip(textOf(turn).trim(), mostRepeated),
    unread: turn === undefined ? "" : describeUnread(turn),
    results: turns.slice(at + 1).filter(({ role }) => role === "tool").map((result) => ({
      tool: tools.get(result.toolCallId ?? "") ?? "the tool",
      text: clip(textOf(result).trim(), mostRepeated)
    }))
  }
}

const describeUnread = ({ content }: Turn): string => {
  const count = (type: "image" | "file"): ReadonlyArray<string> => {
    const number = content.filter((part) => part.type === type).length
    return number === 0 ? [] : [`${number} ${type}${number === 1 ? "" : "s"}`]
  }
  const given = [...count("image"), ...count("file")]
  return given.length === 0 ? "" : ` It came with ${given.join(" and ")}, which this engine cannot read.`
}
