/** What answers a conversation, whatever dialect it came in. */
import type { Stream } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Call } from "../../call/Protocol.ts"
import type { Conversation } from "./Conversation.ts"
import type { Losses } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"

export interface ChatRequest {
  readonly conversation: Conversation
  readonly call: Call
  /** What the engine cannot carry out, it says here before its first event. */
  readonly losses: Losses
}

export interface ChatEngine {
  readonly answer: (request: ChatRequest) => Stream.Stream<ModelEvent, JobError>
}
