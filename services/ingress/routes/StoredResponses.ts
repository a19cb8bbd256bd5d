/**
 * `/v1/responses/{response_id}`: clients get and delete their stored responses, list what each was made from, and cancel those in
 * the background.
 */
import { Effect, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { InvalidRequest, ReferenceNotFound, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { suffixOf } from "../../../shared/contract/ResponseId.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Owners } from "../../../shared/records/Owners.ts"
import type { ResponseRecord } from "../../../shared/records/ResponseRecord.ts"
import { idOf, itemsIn, joinItems, Responses } from "../../../shared/records/Responses.ts"
import { AnswerTasks } from "../../../shared/tasks/AnswerTasks.ts"
import { authenticate } from "../request/Authentication.ts"
import type { RequestError } from "../errors/IngressError.ts"
import { responsesPath } from "../paths/RouteTemplate.ts"
import * as BackgroundResponse from "./BackgroundResponse.ts"
import { respond } from "./Respond.ts"

const dialect = "openai"

/** How long the store may be unavailable before a client gets 503, in milliseconds. */
const patienceMs = 5_000
export const services = Responses.layer({ patienceMs })

const unavailable = () => new Unavailable({ retryAfterMs: 1_000 })
const notFound = new ReferenceNotFound({ param: "response_id" })

interface Asked {
  readonly owner: Owner
  readonly id: string
  readonly query: URLSearchParams
}

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

const maxItems = 100
const itemsByDefault = 20

/** A page of the items, the latest first unless the query says otherwise. `after` is the last item of the page before. */
const page = (all: ReadonlyArray<Item>, query: URLSearchParams): Effect.Effect<object, InvalidRequest> => {
  const limit = Number(query.get("limit") ?? itemsByDefault)
  const order = query.get("order") ?? "desc"
  const after = query.get("after")
  if (!Number.isInteger(limit) || limit < 1 || limit > maxItems) {
    return Effect.fail(InvalidRequest.at("limit", `must be a whole number from 1 to ${maxItems}`))
  }
  if (order !== "asc" && order !== "desc") return Effect.fail(InvalidRequest.at("order", "must be 'asc' or 'desc'"))
  const items = order === "asc" ? all : all.toReversed()
  const from = after === null ? 0 : items.findIndex((item) => idOf(item) === after) + 1
  if (after !== null && from === 0) return Effect.fail(InvalidRequest.at("after", "is no item of this response"))
  const data = items.slice(from, from + limit)
  return Effect.succeed({
    object: "list",
    data,
    first_id: idOf(data[0]) ?? null,
    last_id: idOf(data.at(-1)) ?? null,
    has_more: from + limit < items.length
  })
}

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const owners = yield* Owners
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

  const get = Effect.fnUntraced(function*(asked: Asked) {
    if (asked.query.get("stream") === "true") {
      return yield* InvalidRequest.at("stream", "a stored response is not available as a stream", "not_supported")
    }
    return yield* find(asked).pipe(
      Effect.map(show),
      Effect.catchTag("ReferenceNotFound", () => findUnfinished(asked))
    )
  })

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
    return yield* page(items.map((item, index) => toListed(item, `item_${suffix}_${index}`)), asked.query)
  })

  const add = (
    method: "GET" | "POST" | "DELETE",
    suffix: string,
    name: string,
    answer: (asked: Asked) => Effect.Effect<object, RequestError>
  ) =>
    router.add(
      method,
      `${responsesPath}/:id${suffix}`,
      ({ headers, url }: HttpServerRequest.HttpServerRequest) =>
        respond(`responses.${name}`, dialect, (record) =>
          Effect.gen(function*() {
            const key = yield* authenticate(keys, headers, dialect)
            record.setKey(key.id)
            const { id = "" } = yield* HttpRouter.params
            const owner = owners.known(key.owner)
            if (owner === undefined) return yield* notFound
            const { searchParams: query } = new URL(url, "http://gateway")
            return HttpServerResponse.jsonUnsafe(yield* answer({ owner, id, query }))
          }))
    )

  yield* add("GET", "", "get", get)
  yield* add("DELETE", "", "delete", remove)
  yield* add("POST", "/cancel", "cancel", cancel)
  yield* add("GET", "/input_items", "input_items", listInput)
}))
