/** What answers a conversation, whatever dialect it came in. */
import type { Stream } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { Conversation } from "./Conversation.ts"
import type { ModelEvent } from "./ModelEvent.ts"

export interface ChatEngine {
  /** `options` are the provider's `options` in the catalogue, for the engine to decode. */
  readonly answer: (
    conversation: Conversation,
    options: Readonly<Record<string, unknown>>
  ) => Stream.Stream<ModelEvent, JobError>
}
