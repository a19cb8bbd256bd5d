/**
 * The interfaces of chat dialects. A client's dialect decodes requests to the canonical conversation and encodes canonical events as the
 * answer. A provider's dialect does the reverse. So any engine and any provider can serve any client.
 */
import { Clock, Effect, type Schema } from "effect"
import { randomUUID } from "node:crypto"
import type { Usage } from "../../../contract/Usage.ts"
import type { Conversation, MediaPart, SettingNames } from "./Conversation.ts"
import type { Fate, Losses } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import type { Origin } from "./Signature.ts"

/** The data that all pieces of one answer share. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits; the dialect adds its prefix. */
  readonly id: string
  /** The whole id, if the answer continues one that has begun. */
  readonly givenId?: string | undefined
  /** Unix time in seconds. */
  readonly created: number
  /** The current time in the same unit. */
  readonly now?: () => number
  /** The model's name as the client knows it. */
  readonly model: string
  /** Identifies the engine, if known. */
  readonly fingerprint: string | undefined
}

/** The id with the dialect's prefix. */
export const idOf = (prefix: string, { givenId, id }: AnswerIdentity): string => givenId ?? prefix + id

/** A new identity at the clock's current time. */
export const identityAt = (clock: Clock.Clock, model: string, fingerprint?: string): AnswerIdentity => {
  const now = () => Math.floor(clock.currentTimeMillisUnsafe() / 1_000)
  return { id: randomUUID().replaceAll("-", ""), created: now(), now, model, fingerprint }
}

export const newIdentity = (model: string, fingerprint?: string): Effect.Effect<AnswerIdentity> =>
  Effect.map(Clock.Clock, (clock) => identityAt(clock, model, fingerprint))

/** Encodes one answer. Events must be in the order of `ModelEvent`. */
export interface AnswerEncoder {
  /** The frames of a streamed answer for this event, if any. */
  readonly frames: (event: ModelEvent) => string
  /** The frames that end a streamed answer. */
  readonly lastFrames: () => string
  /** The body of a whole answer, from all its events. */
  readonly body: (events: ReadonlyArray<ModelEvent>) => unknown
}

/** The functions that a client's dialect needs to continue an answer. */
export interface Continuation<Request> {
  /** Reads the client's own stream. */
  readonly decoder: () => AnswerDecoder
  /** The client's body with the beginning of the answer at its end; `undefined` if the dialect does not allow that here. */
  readonly prefill: (body: Uint8Array, text: string) => Uint8Array | undefined
  /**
   * An encoder in the state after an answer with this text, whose last frame is given; `undefined` if it cannot continue from there.
   * Default: an encoder that has encoded the text.
   */
  readonly takeOver?: (
    request: Request,
    identity: AnswerIdentity,
    text: string,
    lastFrame: unknown
  ) => AnswerEncoder | undefined
}

export interface ClientDialect<Request> {
  /** The operation whose requests are in this dialect. */
  readonly operation: string
  readonly request: Schema.Codec<Request, unknown>
  readonly settings: SettingNames
  /** What happens to each field of a request on its way to the conversation. */
  readonly fates: Fate
  /** Several if the request has several prompts; the choices of their answers are numbered consecutively. */
  readonly toConversation: (request: Request, losses: Losses) => Conversation | ReadonlyArray<Conversation>
  readonly streams: (request: Request) => boolean
  readonly encoder: (request: Request, identity: AnswerIdentity) => AnswerEncoder
  readonly continuation: Continuation<Request>
}

/** A dialect in which clients can have the tokens of a request counted. */
export interface CountDialect<Request>
  extends Pick<ClientDialect<Request>, "operation" | "request" | "settings" | "fates" | "toConversation">
{
  readonly toAnswer: (tokens: number) => object
}

/** The recipient of a request. */
export interface Target {
  /** The model's name at the provider. */
  readonly model: string
  readonly streams: boolean
  /** See `Call`. */
  readonly session?: string | undefined
  readonly losses: Losses
}

/** Decodes one answer, streamed or whole. */
export interface AnswerDecoder {
  /** The events of a frame's data, or of a whole answer; `undefined` if malformed. */
  readonly frame: (data: unknown) => ReadonlyArray<ModelEvent> | undefined
  readonly whole: (answer: unknown) => ReadonlyArray<ModelEvent> | undefined
  /** Whether every started choice has a finish reason. */
  readonly isComplete: boolean
  /** Whether the answer may end here without a reason, which some servers never send. Only for dialects whose `[DONE]` ends a stream. */
  readonly mayEnd?: boolean
  /** The `finish` event of each choice. */
  readonly last: () => ReadonlyArray<ModelEvent>
  readonly usage: Usage | undefined
}

/** The names that a provider accepts for tools. */
export interface NameRule {
  /** Matches a character that the provider rejects. */
  readonly rejected: RegExp
  /** Matches the beginnings that the provider accepts. Default: all. */
  readonly start?: RegExp
  readonly most: number
}

export interface ProviderDialect<Options> {
  readonly origin: Origin
  readonly settings: SettingNames
  /** Whether one request can return several choices. */
  readonly takesChoices: boolean
  /** The names that its tools may have. */
  readonly toolNames: NameRule
  /** Whether the provider rejects calls without results, and results without calls. */
  readonly pairsCalls: boolean
  /** Whether the provider cannot fetch this URL. */
  readonly needsInline: (url: string, part: MediaPart) => boolean
  /** The provider's `options` in the catalogue. */
  readonly options: Schema.Codec<Options, unknown>
  readonly toRequest: (conversation: Conversation, target: Target, options: Options) => object
  readonly decoder: () => AnswerDecoder
}
