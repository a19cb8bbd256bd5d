/** Serves the operations that count tokens with a `Counter`. */
import { Effect } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Perform } from "../../call/Protocol.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import type { ChatRequest } from "../conversation/ChatOverEngine.ts"
import * as ClientRequest from "../conversation/ClientRequest.ts"
import type { CountDialect } from "../conversation/Dialect.ts"
import * as CountDialects from "../CountDialects.ts"

export interface Count {
  readonly tokens: number
  /** The count is not from the provider that bills the tokens. */
  readonly isEstimate: boolean
}

/** Counts the tokens of a conversation. */
export type Counter = (request: ChatRequest) => Effect.Effect<Count, JobError>

const utf8 = new TextEncoder()

const perform = <Request>(
  counter: Counter,
  dialect: CountDialect<Request>,
  tolerance: "ordinary" | "lenient"
): readonly [string, Perform] => {
  const decode = ClientRequest.decoder(dialect, tolerance)
  return [
    dialect.operation,
    Effect.fnUntraced(function*(call, sink) {
      const { conversations, losses } = yield* decode(call)
      yield* losses.failIfRefused
      const counts = yield* Effect.forEach(conversations, (conversation) => counter({ conversation, call, losses }))
      // agents that are told 0 never compact their conversation
      const tokens = Math.max(1, counts.reduce((sum, { tokens }) => sum + tokens, 0))
      const warnings = TranslationWarnings.toHeaders(losses.warnings)
      const isEstimate = counts.some(({ isEstimate }) => isEstimate)
      sink.start({
        status: 200,
        contentType: "application/json",
        headers: isEstimate ? { ...warnings, "x-gateway-token-count": "estimated" } : warnings
      })
      sink.write(utf8.encode(JSON.stringify(dialect.toAnswer(tokens))))
      return undefined
    })
  ]
}

/** By the operation's name. */
export const performs = (
  counter: Counter,
  tolerance: "ordinary" | "lenient"
): ReadonlyArray<readonly [string, Perform]> => CountDialects.map((dialect) => perform(counter, dialect, tolerance))
