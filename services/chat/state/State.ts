/**
 * Keeps the conversations of clients in the responses format: resolves what a request refers to before the call, and stores the
 * response after it, before the client knows that it is complete.
 */
import { Clock, Effect, Layer } from "effect"
import * as Fiberless from "../../../shared/bounds/Fiberless.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { compaction } from "../../../shared/contract/operations/Compaction.ts"
import { responses as responsesOperation } from "../../../shared/contract/operations/Responses.ts"
import { InvalidRequest, type JobError } from "../../../shared/contract/JobError.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import * as Json from "../../../shared/provider/json/Json.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"
import { Responses } from "../../../shared/records/Responses.ts"
import type { Work } from "../../../shared/worker/JobLife.ts"
import { type Answer, type Perform, Preparation } from "../../../shared/worker/Preparation.ts"
import { Compactions } from "./Compactions.ts"
import * as ExpandCompactions from "./ExpandCompactions.ts"
import { RecordedAnswer } from "./RecordedAnswer.ts"
import * as References from "./References.ts"

/** How long a store may be unavailable before a request fails, in milliseconds. */
const patienceMs = 10_000

const encryptedReasoning = "reasoning.encrypted_content"

/** Whether the response is to be stored, which is the default. */
const isStored = (body: Uint8Array): boolean => JsonText.valueOf(body, JsonText.members(body) ?? [], "store") !== false

/** With reasoning that later requests can continue from. */
const withReasoning = (work: Work): Work => {
  const members = JsonText.members(work.body) ?? []
  const include = Json.list(JsonText.valueOf(work.body, members, "include"))
  if (include.includes(encryptedReasoning)) return work
  const changes = new Map([["include", [...include, encryptedReasoning]]])
  return { ...work, body: JsonText.setMembers(work.body, members, changes) }
}

const previousIn = ({ body }: Work): string | null =>
  Json.string(JsonText.valueOf(body, JsonText.members(body) ?? [], "previous_response_id")) || null

/** A provider may know an earlier response that the gateway does not. */
const withoutPrevious = ({ conversation, work }: References.Resolved): Work =>
  conversation === undefined ? work : {
    ...work,
    body: JsonText.setMembers(
      work.body,
      JsonText.members(work.body) ?? [],
      new Map([["previous_response_id", null]])
    )
  }

const respond = Effect.fnUntraced(function*(
  stores: References.Stores,
  work: Work,
  answer: Answer,
  perform: Perform
): Effect.fn.Return<Usage | undefined, JobError> {
  const resolved = yield* References.resolve(stores, work)
  const previous = previousIn(work)
  if (previous !== null && resolved.conversation === undefined) {
    const problem = "not found, expired, or owned by another API key"
    return yield* InvalidRequest.at("previous_response_id", problem, "previous_response_not_found")
  }
  const expanded = yield* ExpandCompactions.prepare(stores.compactions, withoutPrevious(resolved))
  if (!isStored(work.body)) return yield* perform(expanded, answer)
  const { owner } = work
  // of an older ingress
  if (owner === undefined) return yield* References.unavailable()
  const recorded = new RecordedAnswer(answer, { store: true, previous_response_id: previous })
  const usage = yield* perform(withReasoning(expanded), recorded)
  const response = recorded.response()
  if (response !== undefined) {
    const record = { ...response, input: resolved.own, at: yield* Clock.currentTimeMillis }
    yield* stores.responses.write(owner, record, resolved.conversation).pipe(
      Effect.mapError(References.unavailable),
      // the call was paid
      Effect.tapError(() => Effect.sync(() => usage === undefined ? undefined : work.onCut(usage)))
    )
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
            return References.resolve(stores, work).pipe(
              Effect.flatMap((resolved) => ExpandCompactions.prepare(stores.compactions, withoutPrevious(resolved))),
              Effect.flatMap((expanded) => perform(expanded, answer))
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
