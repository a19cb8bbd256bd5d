/** Decodes a client's request to canonical conversations and records the losses. */
import { Effect } from "effect"
import type { InvalidRequest } from "../../../contract/JobError.ts"
import { strictTranslation, translationHeader } from "../../../contract/Translation.ts"
import { reader, turnFor } from "../../call/RequestBody.ts"
import type { Call } from "../../call/Protocol.ts"
import type { Conversation } from "./Conversation.ts"
import type { ClientDialect } from "./Dialect.ts"
import { Losses } from "./Losses.ts"

export interface ClientRequest<Request> {
  readonly request: Request
  readonly conversations: ReadonlyArray<Conversation>
  /** The consumer of the conversations adds to it. */
  readonly losses: Losses
}

/** `tolerance` applies unless the client requests strict translation. */
export const decoder = <Request>(
  dialect: ClientDialect<Request>,
  tolerance: "ordinary" | "lenient"
): (call: Call) => Effect.Effect<ClientRequest<Request>, InvalidRequest> => {
  const read = reader(dialect.request)
  return (call) =>
    Effect.flatMap(read(call), ({ json, request }) => {
      const isStrict = call.headers?.[translationHeader] === strictTranslation
      const losses = new Losses(isStrict ? "strict" : tolerance, dialect.settings)
      const turn = turnFor(call)
      return turn.pipe(
        Effect.andThen(Effect.sync(() => losses.recordUnmapped(json, dialect.fates))),
        Effect.andThen(turn),
        Effect.map(() => ({ request, conversations: [dialect.toConversation(request, losses)].flat(), losses }))
      )
    })
}
