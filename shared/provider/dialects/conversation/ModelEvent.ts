/**
 * The canonical events of a chat answer, which engines and translated providers emit and every dialect encodes. Each choice
 * has any number of deltas, then exactly one `finish`; one `usage` follows all choices. All arguments of a tool call precede
 * the next event of any other kind, and the next call, of that choice.
 */
import type { Usage } from "../../../contract/Usage.ts"
import type { Signature } from "./Signature.ts"

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** A source on the web that the answer names for a part of its text. */
export interface Citation {
  readonly url: string
  /** Empty if unknown. */
  readonly title: string
  /** The part of the text: characters, counted through all the text of the choice. Empty if unknown. */
  readonly start: number
  readonly end: number
  /** What the source says; empty if unknown. */
  readonly quote: string
}

export type ModelEvent =
  | { readonly type: "text"; readonly choice: number; readonly delta: string }
  /** A source of text that precedes. */
  | { readonly type: "citation"; readonly choice: number; readonly citation: Citation }
  /** The model's explanation of why it does not answer. */
  | { readonly type: "refusal"; readonly choice: number; readonly delta: string }
  | { readonly type: "reasoning"; readonly choice: number; readonly delta: string }
  /** Ends a piece of reasoning, which can be empty. */
  | { readonly type: "signature"; readonly choice: number; readonly signature: Signature }
  /** Starts a tool call. `call` counts the tool calls of this choice from 0. */
  | {
    readonly type: "toolCall"
    readonly choice: number
    readonly call: number
    readonly id: string
    readonly name: string
  }
  /** A piece of the arguments' JSON. */
  | { readonly type: "toolArguments"; readonly choice: number; readonly call: number; readonly delta: string }
  /** A picture or another file, as base64. */
  | { readonly type: "media"; readonly choice: number; readonly mediaType: string; readonly data: string }
  | {
    readonly type: "finish"
    readonly choice: number
    readonly reason: FinishReason
    /** The stop sequence that ended the answer. */
    readonly stopSequence?: string | undefined
  }
  | { readonly type: "usage"; readonly usage: Usage }
