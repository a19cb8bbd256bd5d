/**
 * Keeps the conversations of clients in the responses format: resolves what a request refers to before the call, and stores the
 * response after it, before the client knows that it is complete.
 */
import { Clock, Effect, Layer } from "effect"
import * as Fiberless from "../../../shared/bounds/Fiberless.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { compaction } from "../../../shared/contract/operations/Compaction.ts"
import { responses as responsesOperation } from "../../../shared/contract/operations/Responses.ts"
import { responsesCount } from "../../../shared/contract/operations/TokenCounts.ts"
import { type JobError, orUnavailable, Unavailable } from "../../../shared/contract/JobError.ts"
import { isDiscarded } from "../../../shared/contract/Owner.ts"
import { isResponseId } from "../../../shared/contract/ResponseId.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import * as PaidParts from "../../../shared/provider/call/PaidParts.ts"
import { encryptedReasoning } from "../../../shared/provider/dialects/responses/ResponsesRequest.ts"
import * as Json from "../../../shared/provider/json/Json.ts"
import { Responses } from "../../../shared/records/Responses.ts"
import type { Work } from "../../../shared/worker/JobLife.ts"
import { type Answer, type Perform, Preparation } from "../../../shared/worker/Preparation.ts"
import { Compactions } from "./Compactions.ts"
import * as ExpandCompactions from "./ExpandCompactions.ts"
import { RecordedAnswer } from "./RecordedAnswer.ts"
import * as References from "./References.ts"

/** How long a store may be unavailable before a request fails, in milliseconds. */
const patienceMs = 10_000

/** Asks for encrypted reasoning in a stored response, so that later requests can continue from it. */
const withReasoning = (request: References.Request): ReadonlyArray<readonly [string, unknown]> => {
  const include = Json.list(References.valueOf(request, "include"))
  return include.includes(encryptedReasoning) ? [] : [["include", [...include, encryptedReasoning]]]
}

/** Fields of a response in the background. Its id is the one that the client already has. */
const inBackground = ({ taskId }: Work): { readonly id: string; readonly background: true } | undefined =>
  taskId !== undefined && isResponseId(taskId) ? { id: taskId, background: true } : undefined

/** Providers never get requests in the background: the gateway waits for the answer. */
const awaited = ["background", false] as const

/** Replaces a request's references and compactions with their content. */
const expand = Effect.fnUntraced(function*(
  stores: References.Stores,
  work: Work,
  resolve: typeof References.resolve
): Effect.fn.Return<Work, JobError> {
  const request = References.read(work)
  const { changes } = yield* resolve(stores, request)
  return yield* ExpandCompactions.prepare(stores.compactions, References.change(request, changes))
})

const respond = Effect.fnUntraced(function*(
  stores: References.Stores,
  work: Work,
  answer: Answer,
  perform: Perform
): Effect.fn.Return<Usage | undefined, JobError> {
  const request = References.read(work)
  const { changes, conversation, own, previous } = yield* References.resolveAll(stores, request)
  const isStored = References.valueOf(request, "store") !== false && !isDiscarded(work)
  const { owner } = work
  // the job is from an older ingress
  if (isStored && owner === undefined) return yield* Unavailable.briefly()
  const background = inBackground(work)
  const changed = References.change(
    request,
    new Map([...changes, ...isStored ? withReasoning(request) : [], ...background === undefined ? [] : [awaited]])
  )
  const expanded = yield* ExpandCompactions.prepare(stores.compactions, changed)
  // the provider's own values of `store` and `previous_response_id` are right
  if (!isStored && previous === null) return yield* perform(expanded, answer)
  const recorded = new RecordedAnswer(answer, { store: isStored, previous_response_id: previous, ...background })
  const usage = yield* perform(expanded, recorded)
  const response = recorded.response()
  if (recorded.isTooLarge && isStored) {
    yield* Effect.logWarning("a response is too large to be stored", { model: work.model })
  }
  if (response?.isIncomplete === true) work.onIncomplete?.()
  if (response !== undefined && isStored && owner !== undefined) {
    const record = { ...response, input: own, at: yield* Clock.currentTimeMillis }
    yield* PaidParts.after(work, usage, orUnavailable(stores.responses.write(owner, record, conversation)))
  }
  recorded.release()
  return usage
})

export const layer = Layer.effect(
  Preparation,
  Effect.gen(function*() {
    const stores = { responses: yield* Responses, compactions: yield* Compactions }
    return Preparation.of({
      around: (work, answer, perform) => {
        switch (work.operation.name) {
          case chatCompletions.name:
            return Fiberless.flatMap(
              ExpandCompactions.prepare(stores.compactions, work),
              (expanded) => perform(expanded, answer)
            )
          case compaction.name:
            return Effect.flatMap(
              expand(stores, work, References.resolve),
              (expanded) => perform(expanded, answer)
            )
          case responsesCount.name:
            return Effect.flatMap(
              expand(stores, work, References.resolveAll),
              (expanded) => perform(expanded, answer)
            )
          case responsesOperation.name:
            return respond(stores, work, answer, perform)
          default:
            return perform(work, answer)
        }
      }
    })
  })
).pipe(Layer.provide([Responses.layer({ patienceMs }), Compactions.layer]))
