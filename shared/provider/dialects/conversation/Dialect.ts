/**
 * What a chat dialect is to the gateway. A client speaks one: there is a way from its request to the canonical
 * conversation, and a way from canonical events back to its answer. A provider speaks one: the same two ways in the other
 * direction. With these any client can be served by any engine and any provider.
 */
import type { Schema } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import type { Conversation, MediaPart, SettingNames } from "./Conversation.ts"
import type { Fate, Losses } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import type { Origin } from "./Signature.ts"

/** What all pieces of one answer have in common. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits, to be prefixed as the dialect does. */
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  /** As the client knows it. */
  readonly model: string
  /** Says what made the answer, where that is known. */
  readonly fingerprint: string | undefined
}

/** Encodes one answer. Events come in their order; see `ModelEvent`. */
export interface AnswerEncoder {
  /** The frames of a streamed answer that this event adds; empty where it adds none. */
  readonly frames: (event: ModelEvent) => string
  /** The frames that end a streamed answer. */
  readonly lastFrames: () => string
  /** The body of a whole answer, from all its events. */
  readonly body: (events: ReadonlyArray<ModelEvent>) => unknown
}

export interface ClientDialect<Request> {
  /** The operation whose requests are in this dialect. */
  readonly operation: string
  readonly request: Schema.Codec<Request, unknown>
  readonly settings: SettingNames
  /** What becomes of each field of a request on its way to the conversation. */
  readonly fates: Fate
  /** Several where the request holds several prompts; the choices of their answers are then numbered through. */
  readonly toConversation: (request: Request, losses: Losses) => Conversation | ReadonlyArray<Conversation>
  readonly streams: (request: Request) => boolean
  readonly encoder: (request: Request, identity: AnswerIdentity) => AnswerEncoder
}

/** For whom a request is written. */
export interface Target {
  /** The model's name at the provider. */
  readonly model: string
  readonly streams: boolean
  readonly losses: Losses
}

/** Decodes one answer, streamed or whole. */
export interface AnswerDecoder {
  /** The events of a frame's data, or of a whole answer; `undefined` where it makes no sense. */
  readonly frame: (data: unknown) => ReadonlyArray<ModelEvent> | undefined
  readonly whole: (answer: unknown) => ReadonlyArray<ModelEvent> | undefined
  /** Whether the answer has said why it ends, of each choice that has begun. */
  readonly isComplete: () => boolean
  /** How each choice ended, and what was consumed. */
  readonly last: () => ReadonlyArray<ModelEvent>
  readonly usage: () => Usage | undefined
}

export interface ProviderDialect<Options> {
  readonly origin: Origin
  readonly settings: SettingNames
  /** Whether one request can ask for several choices. */
  readonly takesChoices: boolean
  /** Whether it cannot fetch this by its address. */
  readonly needsInline: (url: string, part: MediaPart) => boolean
  /** The provider's `options` in the catalogue. */
  readonly options: Schema.Codec<Options, unknown>
  readonly toRequest: (conversation: Conversation, target: Target, options: Options) => object
  readonly decoder: () => AnswerDecoder
}
