/**
 * `/v1/responses/{response_id}`: clients get and delete their stored responses, list what each was made from, and cancel those in
 * the background.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { turnFor } from "../../../shared/bounds/Turns.ts"
import { InvalidRequest, orUnavailable, ReferenceNotFound } from "../../../shared/contract/JobError.ts"
import { asUnavailable } from "../../../shared/nats/JetStream.ts"
import { isResponseId, suffixOf } from "../../../shared/contract/ResponseId.ts"
import type { ResponseRecord } from "../../../shared/records/ResponseRecord.ts"
import { idOf, itemsIn, type Reserve, Responses } from "../../../shared/records/Responses.ts"
import { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import type { RequestError } from "../errors/IngressError.ts"
import { responsesPath } from "../paths/RouteTemplate.ts"
import { BodyMemory } from "../body/BodyMemory.ts"
import { noMemory } from "../body/UploadBudget.ts"
import * as AnswerLog from "./AnswerLog.ts"
import * as BackgroundResponse from "./BackgroundResponse.ts"
import { addAll, type Asked, json, limitIn, type OwnedRoute, routesOf, toPage } from "./OwnedRoutes.ts"

/** How long the store may be unavailable before a client gets 503, in milliseconds. */
const patienceMs = 5_000
export const services = Responses.layer({ patienceMs })

const notFound = new ReferenceNotFound({ param: "response_id" })

/** Maximum memory of a request for each byte of the records that it reads: the byte, its parsed value and the answer. */
const copies = 3

const bracket = Buffer.from(",\"output\":[")
const end = Buffer.from("]}")

/** The response with its output. The object always has other members, so a comma precedes the output. */
const show = ({ output, response }: ResponseRecord) =>
  HttpServerResponse.uint8Array(Buffer.concat([response.subarray(0, -1), bracket, output, end]), {
    contentType: "application/json"
  })

type Item = Readonly<Record<string, unknown>>

/** An item of a request in the form of a listing, which has all fields. */
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

const isInBackground = ({ response }: ResponseRecord): boolean =>
  Reflect.get(JSON.parse(Buffer.from(response).toString()) as object, "background") === true

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const responses = yield* Responses
  const tasks = yield* AnswerTasks
  const memory = yield* BodyMemory

  /** Reserves memory for what a request reads, until its client has the answer. */
  const reserveFor = ({ key, request }: Asked): Reserve<RequestError> => {
    const budget = memory.upload(key)
    const response = NodeHttpServerRequest.toServerResponse(request)
    response.once("close", () => budget.release())
    let bytes = 0
    return (more) =>
      Effect.suspend(() => {
        bytes += copies * more
        return !response.closed && budget.reserve(bytes) ? Effect.void : Effect.fail(noMemory)
      })
  }

  const read = ({ owner }: Asked, id: string, reserve: Reserve<RequestError>) =>
    asUnavailable(responses.find(owner, id, reserve))

  const find = (asked: Asked, reserve: Reserve<RequestError>) =>
    Effect.flatMap(read(asked, asked.id, reserve), (found) => Effect.fromOption(found, () => notFound))

  /** A response in the background that is not complete. */
  const findUnfinished = Effect.fnUntraced(function*({ id, owner }: Asked, reserve: Reserve<RequestError>) {
    const task = Option.filter(yield* tasks.find(owner, id), ({ status }) => status !== "completed")
    if (Option.isNone(task)) return yield* notFound
    const { bytes = 0 } = task.value.request ?? {}
    yield* reserve(bytes)
    const body = yield* tasks.readRequest(owner, task.value)
    yield* turnFor(bytes)
    return yield* Effect.fromOption(
      Option.map(body, (body) => HttpServerResponse.jsonUnsafe(BackgroundResponse.view(task.value, body))),
      () => notFound
    )
  })

  const stream = Effect.fnUntraced(function*(asked: Asked) {
    const task = yield* tasks.find(asked.owner, asked.id)
    if (Option.isSome(task)) return yield* AnswerLog.answer(tasks, asked, task.value, "starting_after")
    yield* find(asked, reserveFor(asked))
    return yield* InvalidRequest.at("stream", "is only available for responses in the background", "not_supported")
  })

  const get = (asked: Asked) => {
    const reserve = reserveFor(asked)
    const findCompleted = Effect.map(find(asked, reserve), show)
    return findCompleted.pipe(
      Effect.catchTag("ReferenceNotFound", () => findUnfinished(asked, reserve)),
      // completed meanwhile
      Effect.catchTag("ReferenceNotFound", () => findCompleted)
    )
  }

  const cancel = Effect.fnUntraced(function*(asked: Asked) {
    const reserve = reserveFor(asked)
    const task = Option.getOrUndefined(yield* tasks.cancel(asked.owner, asked.id))
    if (task !== undefined && task.status !== "completed") return yield* findUnfinished(asked, reserve)
    const record = yield* find(asked, reserve)
    if (task !== undefined || isInBackground(record)) return show(record)
    return yield* InvalidRequest.at("response_id", "was not created with `background`, so it cannot be cancelled")
  })

  const remove = Effect.fnUntraced(function*({ id, owner }: Asked) {
    const hadTask = yield* tasks.delete(owner, id)
    const isDeleted = yield* orUnavailable(responses.delete(owner, id))
    return isDeleted || hadTask ? { id, object: "response", deleted: true } : yield* notFound
  })

  const listInput = Effect.fnUntraced(function*(asked: Asked) {
    const reserve = reserveFor(asked)
    const record = yield* find(asked, reserve)
    const ancestors = yield* Effect.forEach(record.ancestors, ({ id }) => read(asked, id, reserve), { concurrency: 4 })
    // the conversation needs all of them
    const earlier = Option.getOrElse(Option.all(ancestors), () => [])
    const items: Array<unknown> = []
    for (const list of [...earlier.flatMap(({ input, output }) => [input, output]), record.input]) {
      yield* turnFor(list.length)
      for (const item of itemsIn(list)) items.push(item)
    }
    const suffix = suffixOf(record.id)
    return yield* pageOf(items.map((item, index) => toListed(item, `item_${suffix}_${index}`)), asked.query)
  })

  const routes = routesOf({ path: `${responsesPath}/:id`, name: "responses", orElse: notFound })
  // other tasks are not responses
  const route = (method: OwnedRoute["method"], suffix: string, name: string, answer: OwnedRoute["answer"]) =>
    routes(method, suffix, name, (asked) => isResponseId(asked.id) ? answer(asked) : notFound)

  yield* addAll(router, [
    route("GET", "", "get", (asked) => asked.query.get("stream") === "true" ? stream(asked) : get(asked)),
    route("DELETE", "", "delete", json(remove)),
    route("POST", "/cancel", "cancel", cancel),
    route("GET", "/input_items", "input_items", json(listInput))
  ])
}))
