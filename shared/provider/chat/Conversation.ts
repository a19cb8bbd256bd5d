/** The canonical chat request: what every chat dialect is decoded to before an engine or a foreign provider sees it. */

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  /** An image, as an http(s) or data URL. */
  | { readonly type: "image"; readonly url: string }
  /** Anything else that came in: sound, a file, a video. `mediaType` is empty where the client did not say. */
  | { readonly type: "file"; readonly mediaType: string; readonly name: string | undefined }

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
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string | undefined
  /** JSON Schema of the arguments. */
  readonly parameters: unknown
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string }

export type AnswerFormat =
  | { readonly type: "text" }
  | { readonly type: "json" }
  | { readonly type: "jsonSchema"; readonly schema: unknown }

export interface Conversation {
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: ToolChoice
  readonly format: AnswerFormat
  /** At most one of these ends the answer; the sequence itself is not part of it. */
  readonly stop: ReadonlyArray<string>
  /** In tokens; `undefined` leaves it to the engine. 0 only where a prompt is to be echoed and nothing added. */
  readonly maxTokens: number | undefined
  /** How many answers, at least 1. */
  readonly choices: number
  readonly seed: number | undefined
}
