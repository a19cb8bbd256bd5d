/**
 * The canonical chat request: what every chat dialect is decoded to before an engine or a foreign provider sees it.
 *
 * Parts and tools know where they stand in the client's request (`path`, as in `messages[0].content[1]`), so that what
 * cannot be carried over can be told by its name.
 */
import type { Signature } from "./Signature.ts"

/** What a picture or a file holds, or where it is. */
export type Media =
  /** An http(s) address, or one that only its own provider understands. */
  | { readonly type: "url"; readonly url: string }
  | { readonly type: "base64"; readonly data: string }
  | { readonly type: "text"; readonly text: string }
  /** A file that was uploaded to a provider before, by the provider's name for it. */
  | { readonly type: "id"; readonly id: string }
  /** The client has named a file and nothing else of it. */
  | { readonly type: "none" }

export type ContentPart =
  | { readonly type: "text"; readonly text: string; readonly path?: string }
  | {
    readonly type: "image"
    /** Empty where only its address is known. */
    readonly mediaType: string
    readonly media: Media
    readonly detail?: string | undefined
    readonly path?: string
  }
  /** Anything else that came in: sound, a document, a video. `mediaType` is empty where the client did not say. */
  | {
    readonly type: "file"
    readonly mediaType: string
    readonly name: string | undefined
    readonly media: Media
    readonly path?: string
  }
  /** What the model thought, only on turns of the assistant. The text may be empty: then there is a signature. */
  | {
    readonly type: "reasoning"
    readonly text: string
    readonly signature: Signature | undefined
    readonly path?: string
  }

export type MediaPart = Extract<ContentPart, { readonly type: "image" | "file" }>

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
}

export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: ReadonlyArray<ContentPart>
  /** Only on turns of the assistant. */
  readonly toolCalls: ReadonlyArray<ToolCall>
  /** Only on turns of a tool: which call this answers. */
  readonly toolCallId: string | undefined
  /** Only on turns of a tool: it failed, and the content says how. */
  readonly failed?: boolean
  readonly path?: string
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string | undefined
  /** JSON Schema of the arguments. */
  readonly parameters: unknown
  /** The arguments are to keep to the schema to the letter. */
  readonly strict?: boolean
  readonly path?: string
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string }

export type AnswerFormat =
  | { readonly type: "text" }
  | { readonly type: "json" }
  | {
    readonly type: "jsonSchema"
    readonly schema: unknown
    readonly name?: string
    readonly description?: string
    readonly strict?: boolean
  }

export interface Sampling {
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  readonly presencePenalty: number | undefined
  readonly frequencyPenalty: number | undefined
}

/** How much the model is to think before it answers. */
export type Reasoning =
  | { readonly type: "off" }
  /** As much as it likes. */
  | { readonly type: "auto" }
  | { readonly type: "effort"; readonly effort: Effort }
  | { readonly type: "budget"; readonly tokens: number }

export const efforts = ["minimal", "low", "medium", "high", "xhigh", "max"] as const
export type Effort = typeof efforts[number]

export type Modality = "text" | "image" | "audio"

/** What stands in one field of a request, and is called something else in each dialect. */
export type Setting =
  | "temperature"
  | "topP"
  | "topK"
  | "presencePenalty"
  | "frequencyPenalty"
  | "seed"
  | "stop"
  | "maxTokens"
  | "choices"
  | "reasoning"
  | "format"
  | "toolChoice"
  | "parallelToolCalls"
  | "modalities"
  | "user"

/** What a dialect calls those that it has. */
export type SettingNames = { readonly [S in Setting]?: string }

export interface Conversation {
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: ToolChoice
  /** `false`: at most one tool call in an answer. */
  readonly parallelToolCalls?: boolean | undefined
  readonly format: AnswerFormat
  /** At most one of these ends the answer; the sequence itself is not part of it. */
  readonly stop: ReadonlyArray<string>
  /** In tokens; `undefined` leaves it to the engine. 0 only where a prompt is to be echoed and nothing added. */
  readonly maxTokens: number | undefined
  /** How many answers, at least 1. */
  readonly choices: number
  readonly seed: number | undefined
  readonly sampling?: Sampling
  readonly reasoning?: Reasoning | undefined
  /** What the answer may be made of; `undefined` leaves it to the engine. */
  readonly modalities?: ReadonlyArray<Modality> | undefined
  /** The client's own name for whoever asks. */
  readonly user?: string | undefined
}
