/**
 * The canonical chat request, to which every chat dialect is decoded for an engine or a provider of another dialect.
 *
 * `path` is the place of a part or tool in the client's request, as in `messages[0].content[1]`, for warnings and errors.
 */
import * as ExactJson from "../../../bounds/ExactJson.ts"
import type { Losses } from "./Losses.ts"
import type { Signature } from "./Signature.ts"

/** Content or location of a picture or a file. */
export type Media =
  /** An http(s) URL, or one that only its own provider understands. */
  | { readonly type: "url"; readonly url: string }
  | { readonly type: "base64"; readonly data: string }
  | { readonly type: "text"; readonly text: string }
  /** A file uploaded to a provider, by the provider's id. */
  | { readonly type: "id"; readonly id: string }
  /** The client sent only a file name. */
  | { readonly type: "none" }

/** Marks the end of a prefix that the provider may cache, in the form of the messages dialect. */
export type CacheControl = Readonly<Record<string, unknown>>

interface Cacheable {
  readonly cache?: CacheControl | undefined
}

export type ContentPart = Cacheable & AnyPart

type AnyPart =
  | { readonly type: "text"; readonly text: string; readonly path?: string }
  | {
    readonly type: "image"
    /** Empty if only its URL is known. */
    readonly mediaType: string
    readonly media: Media
    readonly detail?: string | undefined
    readonly path?: string
  }
  /** Audio, a document or a video. `mediaType` is empty if the client did not send it. */
  | {
    readonly type: "file"
    readonly mediaType: string
    readonly name: string | undefined
    readonly media: Media
    readonly path?: string
  }
  /** Only on turns of the assistant. The text can be empty if there is a signature. */
  | {
    readonly type: "reasoning"
    readonly text: string
    readonly signature: Signature | undefined
    readonly path?: string
  }

export type MediaPart = Extract<ContentPart, { readonly type: "image" | "file" }>

export const isMedia = (part: ContentPart): part is MediaPart => part.type === "image" || part.type === "file"

export interface ToolCall extends Cacheable {
  readonly id: string
  readonly name: string
  /** JSON as the model wrote it, not necessarily valid. */
  readonly arguments: string
  readonly path?: string
}

/** One turn of a conversation. A mark on a turn applies to a tool's whole result. */
export interface Turn extends Cacheable {
  readonly role: "system" | "user" | "assistant" | "tool"
  readonly content: ReadonlyArray<ContentPart>
  /** Only on turns of the assistant. */
  readonly toolCalls: ReadonlyArray<ToolCall>
  /** Only on turns of a tool: the call that it answers. */
  readonly toolCallId?: string | undefined
  /** Only on turns of a tool: whether the tool failed, so that the content is its error. */
  readonly failed?: boolean
  readonly path?: string
}

export const textTurn = (role: Turn["role"], text: string, path?: string): Turn => ({
  role,
  content: [{ type: "text", text }],
  toolCalls: [],
  ...(path === undefined ? {} : { path })
})

/**
 * Moves instructions that come between calls and their results behind the results, because providers require results right after
 * their calls.
 */
export const withResultsNext = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const ordered: Array<Turn> = []
  let pending = new Set<string>()
  let held: Array<Turn> = []
  const release = () => {
    ordered.push(...held)
    held = []
  }
  for (const turn of turns) {
    if (turn.role === "system" && pending.size > 0) {
      held.push(turn)
      continue
    }
    if (turn.role === "tool") {
      ordered.push(turn)
      pending.delete(turn.toolCallId ?? "")
      if (pending.size === 0) release()
      continue
    }
    release()
    ordered.push(turn)
    pending = new Set(turn.toolCalls.map(({ id }) => id))
  }
  release()
  return ordered
}

/** Joins adjacent contents of the same role, as some dialects require, and drops empty ones. */
export const joinAdjacent = <Role>(
  contents: ReadonlyArray<readonly [Role, ReadonlyArray<object>]>
): ReadonlyArray<readonly [Role, ReadonlyArray<object>]> => {
  const joined: Array<readonly [Role, Array<object>]> = []
  for (const [role, parts] of contents) {
    if (parts.length === 0) continue
    const last = joined.at(-1)
    if (last?.[0] === role) { for (const part of parts) last[1].push(part) }
    else joined.push([role, [...parts]])
  }
  return joined
}

/** The texts of the system turns, which some dialects put at the front and which hold only text. */
export const systemTexts = (
  turns: ReadonlyArray<Turn>,
  losses: Losses
): ReadonlyArray<Extract<ContentPart, { readonly type: "text" }>> => {
  const leading = turns.findIndex(({ role }) => role !== "system")
  return turns.flatMap(({ content, path = "", role }, index) => {
    if (role !== "system") return []
    if (leading !== -1 && index > leading) losses.warn(path, "was moved to the front")
    return content.flatMap((part) => {
      if (part.type === "text") return [part]
      losses.refuse(part.path ?? path)
      return []
    })
  })
}

export interface ToolDefinition extends Cacheable {
  readonly name: string
  readonly description: string | undefined
  /** JSON Schema of the arguments. */
  readonly parameters: unknown
  /** The arguments must follow the schema exactly. */
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
    readonly path?: string
  }

/** Reads a schema as clients send it: in a wrapper with its name, or bare. */
export const toSchemaFormat = (sent: { readonly [field: string]: unknown }, path: string): AnswerFormat => {
  const { name, schema: wrapped, strict, ...bare } = sent
  const { description } = bare
  return {
    type: "jsonSchema",
    schema: wrapped ?? bare,
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof description === "string" ? { description } : {}),
    ...(strict === true ? { strict } : {}),
    path
  }
}

export type SamplingSetting = "temperature" | "topP" | "topK" | "presencePenalty" | "frequencyPenalty"
export type Sampling = { readonly [S in SamplingSetting]?: number | undefined }

/** How much the model should think before it answers. */
export type Reasoning =
  | { readonly type: "off" }
  /** The model decides. */
  | { readonly type: "auto" }
  | { readonly type: "effort"; readonly effort: Effort }
  | { readonly type: "budget"; readonly tokens: number }

export const efforts = ["minimal", "low", "medium", "high", "xhigh", "max"] as const
export type Effort = typeof efforts[number]

/** The reasoning for the name of an effort, in any dialect. An unknown name is refused at `path`. */
export const reasoningOf = (name: string, path: string, losses: Losses): Reasoning | undefined => {
  if (name === "none") return { type: "off" }
  const effort = efforts.find((effort) => effort === name)
  if (effort !== undefined) return { type: "effort", effort }
  losses.refuse(path, "is an effort that the provider of this model does not have")
  return undefined
}

export type Modality = "text" | "image" | "audio"

/** A setting in a single field, which each dialect names differently. */
export type Setting =
  | SamplingSetting
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
  | "cache"

/** A dialect's names of its settings. */
export type SettingNames = { readonly [S in Setting]?: string }

/** An integer of up to 64 bits. */
export type Seed = number | ExactJson.ExactNumber

/** A conversation. Its own mark asks the provider to cache the whole request. */
export interface Conversation extends Cacheable {
  readonly turns: ReadonlyArray<Turn>
  /** Whether the answer should continue the user's text instead of answering it. */
  readonly continues?: boolean
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly toolChoice: ToolChoice
  /** `false`: at most one tool call in an answer. */
  readonly parallelToolCalls?: boolean | undefined
  readonly format: AnswerFormat
  /** At most one of these ends the answer; the sequence itself is not part of it. */
  readonly stop: ReadonlyArray<string>
  /** `undefined`: the engine decides. 0 only echoes the prompt. */
  readonly maxTokens: number | undefined
  /** Number of answers, at least 1. */
  readonly choices: number
  readonly seed?: Seed | undefined
  readonly sampling?: Sampling
  readonly reasoning?: Reasoning | undefined
  /** Which summary of its reasoning the model should show, in the words of the responses dialect, and the client's name of the setting. */
  readonly summary?: { readonly kind: string; readonly path: string } | undefined
  /** Kinds of output; `undefined`: the engine decides. */
  readonly modalities?: ReadonlyArray<Modality> | undefined
  /** End-user identifier supplied by the client. */
  readonly user?: string | undefined
}

/** The seeds of the calls for a conversation's choices: with the same seed, all choices would be equal. */
export const seedsOf = ({ seed }: Conversation, calls: number): ReadonlyArray<Seed | undefined> => {
  const first = seed === undefined ? undefined : ExactJson.toBigInt(seed)
  return first === undefined
    ? [seed]
    : Array.from({ length: calls }, (_, call) => ExactJson.fromBigInt(first + BigInt(call)))
}

/** Warns that the provider shows no summary of reasoning, or not as asked. */
export const warnOfSummary = ({ summary }: Conversation, losses: Losses): void => {
  if (summary !== undefined) losses.warn(summary.path)
}

/** The mark for a request with a cache key, which says that other requests begin in the same way. */
export const cacheOf = ({ prompt_cache_key: key }: { readonly prompt_cache_key?: string | null }) =>
  key ? { type: "ephemeral" } : undefined

/** All parts of a conversation that have a mark of their own. */
export const marksIn = ({ tools, turns }: Conversation): ReadonlyArray<Cacheable & { readonly path?: string }> =>
  [...turns.flatMap((turn) => [turn, ...turn.content, ...turn.toolCalls]), ...tools].filter(({ cache }) =>
    cache !== undefined
  )

/** The conversation without its cache marks, for a provider that knows none. Warns of the lost marks. */
export const withoutMarks = (conversation: Conversation, losses: Losses): Conversation => {
  const { cache, tools, turns } = conversation
  const marks = marksIn(conversation)
  for (const { path = "" } of marks) losses.warn(`${path}.cache_control`)
  if (cache !== undefined) losses.warnOf("cache")
  if (marks.length === 0 && cache === undefined) return conversation
  const unmarked = <A extends Cacheable>(all: ReadonlyArray<A>) => all.map((each) => ({ ...each, cache: undefined }))
  return {
    ...conversation,
    cache: undefined,
    tools: unmarked(tools),
    turns: unmarked(turns).map((turn) => ({
      ...turn,
      content: unmarked(turn.content),
      toolCalls: unmarked(turn.toolCalls)
    }))
  }
}
