/**
 * `/v1/responses/{response_id}`: clients get and delete their stored responses, list what each was made from, and cancel those in
 * the background.
 */
import { Effect, Option } from "effect"
import { HttpRouter } from "effect/http"
import { InvalidRequest, ReferenceNotFound, Unavailable } from "../../../shared/contract/JobError.ts"
import { isResponseId, suffixOf } from "../../../shared/contract/ResponseId.ts"
import type { ResponseRecord } from "../../../shared/records/ResponseRecord.ts"
import { idOf, itemsIn, joinItems, Responses } from "../../../shared/records/Responses.ts"
import { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import { responsesPath } from "../paths/RouteTemplate.ts"
import * as AnswerLog from "./AnswerLog.ts"
import * as BackgroundResponse from "./BackgroundResponse.ts"
import { addAll, type Asked, json, limitIn, type OwnedRoute, routesOf, toPage } from "./OwnedRoutes.ts"

/** How long the store may be unavailable before a client gets 503, in milliseconds. */
const patienceMs = 5_000
export const services = Responses.layer({ patienceMs })

const unavailable = () => new Unavailable({ retryAfterMs: 1_000 })
const notFound = new ReferenceNotFound({ param: "response_id" })

const show = ({ output, response }: ResponseRecord): object => ({
  ...JSON.parse(Buffer.from(response).toString()) as object,
  output: itemsIn(output)
})

type Item = Readonly<Record<string, unknown>>

/** An item of a request in the form of a listing, which is complete. */
const toListed = (item: unknown, fallback: string): Item => {
  const { content, ...fields } = item as Item
  const id = idOf(item) ?? fallback
  const { role } = fields
  if (typeof role !== "string") return { ...item as Item, id }
  const part = role === "assistant" ? { type: "output_text", annotations: [] } : { type: "input_text" }
  const parts = typeof content === "string" ? [{ ...part, text: content }] : content
  return { type: "message", status: "completed", ...fields, id, content: parts }
}

/** A page of the items, the latest first unless the query says otherwise. `after` is the last item of the page before. */
const pageOf = Effect.fnUntraced(function*(all: ReadonlyArray<Item>, query: URLSearchParams) {
  const limit = yield* limitIn(query)
  const order = query.get("order") ?? "desc"
  const after = query.get("after")
  if (order !== "asc" && order !== "desc") return yield* InvalidRequest.at("order", "must be 'asc' or 'desc'")
  const items = order === "asc" ? all : all.toReversed()
  const from = after === null ? 0 : items.findIndex((item) => idOf(item) === after) + 1
  if (after !== null && from === 0) return yield* InvalidRequest.at("after", "is no item of this response")
  return toPage(items.slice(from, from + limit), from + limit < items.length)
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const responses = yield* Responses
  const tasks = yield* AnswerTasks

  const find = ({ id, owner }: Asked) =>
    Effect.flatMap(
      Effect.mapError(responses.find(owner, id), unavailable),
      (found) => Effect.fromOption(found, () => notFound)
    )

  /** A response in the background that is not complete. */
  const findUnfinished = Effect.fnUntraced(function*({ id, owner }: Asked) {
    const task = Option.filter(yield* tasks.find(owner, id), ({ status }) => status !== "completed")
    if (Option.isNone(task)) return yield* notFound
    const body = yield* tasks.readRequest(owner, task.value)
    return yield* Effect.fromOption(
      Option.map(body, (body) => BackgroundResponse.view(task.value, body)),
      () => notFound
    )
  })

  const stream = Effect.fnUntraced(function*(asked: Asked) {
    const task = yield* tasks.find(asked.owner, asked.id)
    if (Option.isSome(task)) return yield* AnswerLog.answer(tasks, asked, task.value, "starting_after")
    yield* find(asked)
    return yield* InvalidRequest.at("stream", "is only available for responses in the background", "not_supported")
  })

  const findCompleted = (asked: Asked) => Effect.map(find(asked), show)
  const get = (asked: Asked) =>
    findCompleted(asked).pipe(
      Effect.catchTag("ReferenceNotFound", () => findUnfinished(asked)),
      // completed meanwhile
      Effect.catchTag("ReferenceNotFound", () => findCompleted(asked))
    )

  const cancel = Effect.fnUntraced(function*(asked: Asked) {
    const task = Option.getOrUndefined(yield* tasks.cancel(asked.owner, asked.id))
    if (task !== undefined && task.status !== "completed") return yield* findUnfinished(asked)
    const response = show(yield* find(asked))
    if (task !== undefined || Reflect.get(response, "background") === true) return response
    return yield* InvalidRequest.at("response_id", "was not created with `background`, so it cannot be cancelled")
  })

  const remove = Effect.fnUntraced(function*({ id, owner }: Asked) {
    const hadTask = yield* tasks.delete(owner, id)
    const isDeleted = yield* Effect.mapError(responses.delete(owner, id), unavailable)
    return isDeleted || hadTask ? { id, object: "response", deleted: true } : yield* notFound
  })

  const listInput = Effect.fnUntraced(function*(asked: Asked) {
    const record = yield* find(asked)
    const earlier = yield* Effect.mapError(responses.findEarlier(asked.owner, record), unavailable)
    const items = itemsIn(joinItems([Option.getOrElse(earlier, () => new Uint8Array(0)), record.input]))
    const suffix = suffixOf(record.id)
    return yield* pageOf(items.map((item, index) => toListed(item, `item_${suffix}_${index}`)), asked.query)
  })

  const routes = routesOf({ path: `${responsesPath}/:id`, name: "responses", orElse: notFound })
  // other tasks are no responses
  const route = (method: OwnedRoute["method"], suffix: string, name: string, answer: OwnedRoute["answer"]) =>
    routes(method, suffix, name, (asked) => isResponseId(asked.id) ? answer(asked) : notFound)

  yield* addAll(router, [
    route("GET", "", "get", (asked) => asked.query.get("stream") === "true" ? stream(asked) : json(get)(asked)),
    route("DELETE", "", "delete", json(remove)),
    route("POST", "/cancel", "cancel", json(cancel)),
    route("GET", "/input_items", "input_items", json(listInput))
  ])
}))
