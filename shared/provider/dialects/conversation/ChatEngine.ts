/** Answers conversations, independent of the client's dialect. */
import type { Stream } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Call } from "../../call/Protocol.ts"
import type { Conversation } from "./Conversation.ts"
import type { Losses } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"

export interface ChatRequest {
  readonly conversation: Conversation
  readonly call: Call
  /** The engine records here, before its first event, what it cannot carry out. */
  readonly losses: Losses
}

export interface ChatEngine {
  readonly answer: (request: ChatRequest) => Stream.Stream<ModelEvent, JobError>
}
