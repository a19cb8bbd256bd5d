/** `/v1/batches`: clients create, list, get and cancel batches of requests, which are in files. */
import { Effect, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Batches } from "../../../../shared/batches/Batches.ts"
import type { Batch } from "../../../../shared/batches/BatchRecord.ts"
import { InvalidRequest, orUnavailable, ReferenceNotFound } from "../../../../shared/contract/JobError.ts"
import { ClientFiles } from "../../../../shared/files/ClientFiles.ts"
import { batchesPath } from "../../paths/RouteTemplate.ts"
import { keyIn, keyReused } from "../../request/IdempotencyKey.ts"
import { addAll, type Asked, created, json, limitIn, routesOf, toPage } from "../OwnedRoutes.ts"
import { readBatch } from "./BatchBodies.ts"
import { createBatch } from "./BatchCreation.ts"

const notFound = new ReferenceNotFound({ param: "batch_id" })

const seconds = (milliseconds: number | null): number | null =>
  milliseconds === null ? null : Math.floor(milliseconds / 1_000)

export const view = ({ mistakes, progress, request, status, task }: Batch): object => {
  const at = (end: string): number | null => status === end ? seconds(task.ended ?? task.updated) : null
  return {
    id: task.id,
    object: "batch",
    endpoint: request.endpoint,
    errors: mistakes.length === 0 ? null : { object: "list", data: mistakes },
    input_file_id: request.input,
    completion_window: request.window,
    status,
    output_file_id: task.ended === null ? null : progress.output,
    error_file_id: task.ended === null ? null : progress.errors,
    created_at: seconds(task.created),
    in_progress_at: seconds(progress.began),
    expires_at: seconds(request.expires),
    finalizing_at: seconds(progress.finalizing),
    completed_at: at("completed"),
    failed_at: at("failed"),
    expired_at: at("expired"),
    cancelling_at: seconds(task.stopping ?? null),
    cancelled_at: at("cancelled"),
    request_counts: { total: request.total, completed: progress.completed, failed: progress.failed },
    metadata: request.metadata
  }
}

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const batches = yield* Batches
  const files = yield* ClientFiles
  const create = yield* createBatch

  const orNotFound = (found: Option.Option<Batch>) => Effect.fromOption(found, () => notFound)

  const make = Effect.fnUntraced(function*(asked: Asked) {
    const key = yield* keyIn(asked.headers)
    const { bodyHash, fields } = yield* readBatch(asked.request)
    const keyed = key === undefined ? undefined : { operation: batchesPath, key, bodyHash }
    const known = keyed === undefined ? Option.none() : yield* keyReused(batches.join(asked.owner, keyed))
    if (Option.isSome(known)) return { body: view(known.value), isRepeated: true }
    const { completion_window: window, endpoint, input_file_id: input, metadata = null } = fields
    const file = Option.getOrUndefined(yield* orUnavailable(files.find(asked.owner, input)))
    if (file === undefined) return yield* new ReferenceNotFound({ param: "input_file_id" })
    if (file.purpose !== "batch") return yield* InvalidRequest.at("input_file_id", "must be of the purpose 'batch'")
    const { batch, isRepeated } = yield* create(asked, file, { endpoint, window, metadata, ownsInput: false }, keyed)
    return { body: view(batch), isRepeated }
  })

  const list = Effect.fnUntraced(function*({ owner, query }: Asked) {
    const limit = yield* limitIn(query)
    const page = yield* batches.list(owner, { limit, after: query.get("after") ?? undefined })
    return toPage(page.batches.map(view), page.hasMore)
  })

  const one = (get: typeof batches.find) =>
    json(({ id, owner }) => Effect.map(Effect.flatMap(get(owner, id), orNotFound), view))

  const route = routesOf({ path: batchesPath, name: "batches", orElse: notFound })

  yield* addAll(router, [
    route("POST", "", "create", created(make), "create"),
    route("GET", "", "list", json(list), Effect.succeed(HttpServerResponse.jsonUnsafe(toPage([], false)))),
    route("GET", "/:id", "get", one(batches.find)),
    route("POST", "/:id/cancel", "cancel", one(batches.cancel))
  ])
}))
