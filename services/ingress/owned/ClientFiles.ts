/** `/v1/files`: clients upload, list, get, download and delete their files. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { InvalidRequest, orUnavailable, ReferenceNotFound, Unavailable } from "../../../shared/contract/JobError.ts"
import { type ClientFile, ClientFiles, type FilePurpose, quotaMiB } from "../../../shared/files/ClientFiles.ts"
import { answerRange } from "../answer/RangeResponse.ts"
import { clientFilesPath } from "../paths/RouteTemplate.ts"
import * as FileUpload from "./FileUpload.ts"
import { BodyMemory } from "../body/BodyMemory.ts"
import { addAll, type Asked, created, json, limitIn, routesOf, toPage } from "./OwnedRoutes.ts"

/** How long the store may be unavailable before a client gets 503, in milliseconds. */
const patienceMs = 5_000
export const services = ClientFiles.layer({ patienceMs, quotaMiB })

const notFound = new ReferenceNotFound({ param: "file_id" })

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

const view = ({ bytes, created, expires, filename, id, purpose }: ClientFile): object => ({
  id,
  object: "file",
  bytes,
  created_at: seconds(created),
  expires_at: seconds(expires),
  filename,
  purpose,
  status: "processed"
})

const isPurpose = (text: string | null): text is FilePurpose | null =>
  text === null || text === "batch" || text === "batch_output"

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const files = yield* ClientFiles
  const memory = yield* BodyMemory

  const find = ({ id, owner }: Asked) =>
    Effect.flatMap(
      orUnavailable(files.find(owner, id)),
      (found) => Effect.fromOption(found, () => notFound)
    )

  const create = ({ key, owner, request }: Asked) => {
    const budget = memory.upload(key, NodeHttpServerRequest.toIncomingMessage(request))
    return FileUpload.receive(files, owner, request, budget).pipe(
      Effect.map(({ file, isRepeated }) => ({ body: view(file), isRepeated })),
      Effect.ensuring(Effect.sync(() => budget.release()))
    )
  }

  const list = Effect.fnUntraced(function*({ owner, query }: Asked) {
    const limit = yield* limitIn(query)
    const order = query.get("order") ?? "desc"
    if (order !== "asc" && order !== "desc") return yield* InvalidRequest.at("order", "must be 'asc' or 'desc'")
    const purpose = query.get("purpose")
    if (!isPurpose(purpose)) return yield* InvalidRequest.at("purpose", "must be 'batch' or 'batch_output'")
    const after = query.get("after")
    const page = yield* Effect.mapError(
      files.list(owner, {
        limit,
        order,
        ...(after === null ? {} : { after }),
        ...(purpose === null ? {} : { purpose })
      }),
      Unavailable.briefly
    )
    return toPage(page.files.map(view), page.hasMore)
  })

  const remove = Effect.fnUntraced(function*({ id, owner }: Asked) {
    const isDeleted = yield* orUnavailable(files.delete(owner, id))
    return isDeleted ? { id, object: "file", deleted: true } : yield* notFound
  })

  const content = Effect.fnUntraced(function*(asked: Asked) {
    const file = yield* find(asked)
    return yield* answerRange(asked.headers, {
      size: file.bytes,
      tag: `"${file.id}"`,
      contentType: "application/jsonl",
      filename: `${file.id}.jsonl`,
      read: (from, until) => files.read(asked.owner, file, from, until)
    })
  })

  const route = routesOf({ path: clientFilesPath, name: "files", orElse: notFound })

  yield* addAll(router, [
    route("POST", "", "create", created(create), "create"),
    route("GET", "", "list", json(list), Effect.succeed(HttpServerResponse.jsonUnsafe(toPage([], false)))),
    route("GET", "/:id", "get", json((asked) => Effect.map(find(asked), view))),
    route("DELETE", "/:id", "delete", json(remove)),
    route("GET", "/:id/content", "content", content)
  ])
}))
