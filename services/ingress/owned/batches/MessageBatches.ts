/**
 * `/v1/messages/batches`: the same batches in Anthropic's form. The requests come in the body and are stored as a file, and the
 * results are read from the batch's files.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Layer, Option, Stream } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { createHash } from "node:crypto"
import * as ExactJson from "../../../../shared/bounds/ExactJson.ts"
import { Batches } from "../../../../shared/batches/Batches.ts"
import type { Batch } from "../../../../shared/batches/BatchRecord.ts"
import { linesOf } from "../../../../shared/batches/lines/InputLines.ts"
import { InvalidRequest, orUnavailable, ReferenceNotFound } from "../../../../shared/contract/JobError.ts"
import { asUnavailable } from "../../../../shared/nats/JetStream.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { ClientFiles } from "../../../../shared/files/ClientFiles.ts"
import type { RequestError } from "../../errors/IngressError.ts"
import { messageBatchesPath } from "../../paths/RouteTemplate.ts"
import { addAll, type Asked, type Created, created, json, limitIn, routesOf } from "../OwnedRoutes.ts"
import { BodyMemory } from "../../body/BodyMemory.ts"
import { DecodeTurns } from "../../request/DecodeTurns.ts"
import { keyIn } from "../../request/IdempotencyKey.ts"
import { requestLines } from "./BatchBodies.ts"
import { createBatch, createWithFile } from "./BatchCreation.ts"
import { idOf, toBatchId, toResult, view } from "./MessageBatchView.ts"

const [endpoint] = messages.paths

const notFound = new ReferenceNotFound({ param: "message_batch_id" })

const pageOf = (found: ReadonlyArray<Batch>, hasMore: boolean): object => ({
  data: found.map(view),
  has_more: hasMore,
  first_id: found[0] === undefined ? null : idOf(found[0]),
  last_id: found.at(-1) === undefined ? null : idOf(found[found.length - 1]!)
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const batches = yield* Batches
  const files = yield* ClientFiles
  const memory = yield* BodyMemory
  const turns = yield* DecodeTurns
  const create = yield* createBatch

  const make = Effect.fnUntraced(function*(asked: Asked): Effect.fn.Return<Created, RequestError> {
    const { headers, owner } = asked
    const about = { purpose: "batch", filename: "requests.jsonl" } as const
    const key = yield* keyIn(headers)
    const hash = createHash("sha256")
    const budget = memory.upload(asked.key, NodeHttpServerRequest.toIncomingMessage(asked.request))
    const lines = Stream.tap(
      requestLines(asked, endpoint, budget, turns),
      (line) => Effect.sync(() => hash.update(line))
    )
    const store = files.create(owner, about, lines).pipe(
      asUnavailable,
      Effect.ensuring(Effect.sync(() => budget.release()))
    )
    const { batch, isRepeated } = yield* createWithFile(files, owner, store, (file) => {
      const keyed = key === undefined
        ? undefined
        : { operation: messageBatchesPath, key, bodyHash: hash.digest("hex") }
      return create(asked, file, { endpoint, window: "24h", metadata: null, ownsInput: true }, keyed)
    })
    return { body: view(batch), isRepeated }
  })

  const known = Effect.fnUntraced(function*(get: typeof batches.find, { id, owner }: Asked) {
    const found = yield* get(owner, toBatchId(id))
    return yield* Effect.fromOption(
      Option.filter(found, ({ task }) => task.operation === messages.name),
      () => notFound
    )
  })

  const list = Effect.fnUntraced(function*({ owner, query }: Asked) {
    const limit = yield* limitIn(query)
    const asked = (name: string) => Option.getOrUndefined(Option.map(Option.fromNullishOr(query.get(name)), toBatchId))
    const page = yield* batches.list(owner, {
      limit,
      after: asked("after_id"),
      before: asked("before_id"),
      operation: messages.name
    })
    return pageOf(page.batches, page.hasMore)
  })

  /** Deletes a batch and its files, except a file that the client uploaded for `/v1/batches` and may use elsewhere. */
  const remove = Effect.fnUntraced(function*(asked: Asked): Effect.fn.Return<object, RequestError> {
    const { owner } = asked
    const { progress, request, task } = yield* known(batches.find, asked)
    if (task.ended === null) return yield* InvalidRequest.at("message_batch_id", "must have ended: cancel it first")
    const input = request.ownsInput === true ? request.input : null
    const stored = [input, progress.output, progress.errors].filter((file) => file !== null)
    yield* Effect.forEach(stored, (file) => orUnavailable(files.delete(owner, file)), {
      discard: true
    })
    yield* batches.delete(owner, task.id)
    return { id: asked.id, type: "message_batch_deleted" }
  })

  const results = Effect.fnUntraced(function*(asked: Asked): Effect.fn.Return<
    HttpServerResponse.HttpServerResponse,
    RequestError
  > {
    const { owner } = asked
    const { progress, task } = yield* known(batches.find, asked)
    if (task.ended === null) return yield* InvalidRequest.at("message_batch_id", "has no results before it has ended")
    const names = [progress.output, progress.errors].filter((file) => file !== null)
    const found = yield* Effect.forEach(names, (name) => orUnavailable(files.find(owner, name)))
    const lines = Stream.fromIterable(found.flatMap((file) => Option.toArray(file))).pipe(
      Stream.flatMap((file) => linesOf(files.read(owner, file))),
      Stream.map(({ text }): Uint8Array => Buffer.from(`${JSON.stringify(toResult(ExactJson.parse(text)))}\n`))
    )
    return HttpServerResponse.stream(lines, { contentType: "application/x-jsonl" })
  })

  const one = (get: typeof batches.find) => json((asked) => Effect.map(known(get, asked), view))

  const route = routesOf({ path: messageBatchesPath, name: "messages.batches", dialect: "anthropic", orElse: notFound })

  yield* addAll(router, [
    route("POST", "", "create", created(make), "create"),
    route("GET", "", "list", json(list), Effect.succeed(HttpServerResponse.jsonUnsafe(pageOf([], false)))),
    route("GET", "/:id", "get", one(batches.find)),
    route("DELETE", "/:id", "delete", json(remove)),
    route("POST", "/:id/cancel", "cancel", one(batches.cancel)),
    route("GET", "/:id/results", "results", results)
  ])
})).pipe(Layer.provide(DecodeTurns.layer))
