/**
 * The canonical event list of a chat answer: what every engine and every translated provider emits, and what every
 * dialect is encoded from. For each choice: any number of deltas, then exactly one `finish`; after all choices one
 * `usage`.
 */
import type { Usage } from "../../contract/Usage.ts"

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

export type ModelEvent =
  | { readonly type: "text"; readonly choice: number; readonly delta: string }
  | { readonly type: "reasoning"; readonly choice: number; readonly delta: string }
  /** A tool call begins. `call` counts the tool calls of this choice from 0. */
  | {
    readonly type: "toolCall"
    readonly choice: number
    readonly call: number
    readonly id: string
    readonly name: string
  }
  /** A piece of the JSON text of a tool call's arguments. */
  | { readonly type: "toolArguments"; readonly choice: number; readonly call: number; readonly delta: string }
  | {
    readonly type: "finish"
    readonly choice: number
    readonly reason: FinishReason
    /** The stop sequence that ended the answer, where one did. */
    readonly stopSequence?: string
  }
  | { readonly type: "usage"; readonly usage: Usage }
