/**
 * The canonical event list of a chat answer: what every engine and every translated provider emits, and what every
 * dialect is encoded from. For each choice: any number of deltas, then exactly one `finish`; after all choices one
 * `usage`. The pieces of one tool call's arguments come before the next call of that choice begins.
 */
import type { Usage } from "../../../contract/Usage.ts"
import type { Signature } from "./Signature.ts"

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

export type ModelEvent =
  | { readonly type: "text"; readonly choice: number; readonly delta: string }
  /** The model's own words for why it does not answer, in the place of an answer. */
  | { readonly type: "refusal"; readonly choice: number; readonly delta: string }
  | { readonly type: "reasoning"; readonly choice: number; readonly delta: string }
  /** Ends a stretch of reasoning, which may have been without words. */
  | { readonly type: "signature"; readonly choice: number; readonly signature: Signature }
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
  /** A picture, or whatever else is no text, as base64. */
  | { readonly type: "media"; readonly choice: number; readonly mediaType: string; readonly data: string }
  | {
    readonly type: "finish"
    readonly choice: number
    readonly reason: FinishReason
    /** The stop sequence that ended the answer, where one did. */
    readonly stopSequence?: string
  }
  | { readonly type: "usage"; readonly usage: Usage }
