/**
 * What a chat dialect is to the gateway: a way from its request to the canonical conversation, and a way from canonical
 * events back to its answer. With two of these any dialect can be served by any engine.
 */
import type { Schema } from "effect"
import type { Conversation } from "./Conversation.ts"
import type { ModelEvent } from "./ModelEvent.ts"

/** What all pieces of one answer have in common. */
export interface AnswerIdentity {
  /** 32 hexadecimal digits, to be prefixed as the dialect does. */
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  /** As the client knows it. */
  readonly model: string
  /** Says what made the answer. */
  readonly fingerprint: string
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

export interface Dialect<Request> {
  /** The operation whose requests are in this dialect. */
  readonly operation: string
  readonly request: Schema.Codec<Request, unknown>
  /** Several where the request holds several prompts; the choices of their answers are then numbered through. */
  readonly toConversation: (request: Request) => Conversation | ReadonlyArray<Conversation>
  /** What of this request cannot be handed to an engine, with the path of each. Plain ASCII: it becomes a header. */
  readonly warnings?: (request: Request) => ReadonlyArray<string>
  readonly streams: (request: Request) => boolean
  readonly encoder: (request: Request, identity: AnswerIdentity) => AnswerEncoder
}
