/** `GET /v1/results/{id}`: serves results by signed URL. Needs no API key. */
import { Effect, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { orUnavailable } from "../../../shared/contract/JobError.ts"
import { ResultFiles } from "../../../shared/files/ResultFiles.ts"
import { resultsPath } from "../../../shared/files/SignedUrl.ts"
import { FileNotFound, LinkRefused } from "../errors/IngressError.ts"
import { respond } from "../answer/Respond.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { clientFilesPath } from "../paths/RouteTemplate.ts"

/** The path of results in earlier versions, whose URLs work until they expire. Unlike those of clients' files, ids end with a file type. */
const formerPath = `${clientFilesPath}/:id(^[^.]+\\.[a-z0-9]+$)` as const

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const files = yield* ResultFiles
  const serve = Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest) {
    const { id: encoded = "" } = yield* HttpRouter.params
    const id = PathTemplate.decodePath(encoded)
    const query = new URL(request.url, "http://gateway").searchParams
    const verdict = yield* files.verify(id, query.get("expires") ?? "", query.get("signature") ?? "")
    if (verdict !== "valid") return yield* new LinkRefused({ reason: verdict })
    const found = yield* orUnavailable(files.find(id))
    if (Option.isNone(found)) return yield* new FileNotFound()
    const { content, mediaType, size } = found.value
    // as a stream: a client that reads slowly must not keep the whole file in memory
    return HttpServerResponse.stream(content, {
      contentType: mediaType,
      contentLength: size,
      headers: {
        "cache-control": "private, max-age=3600, immutable",
        "content-disposition": `inline; filename="${id}"`,
        // a result may contain text from a client, so browsers must not treat it as a page
        "x-content-type-options": "nosniff"
      }
    })
  })
  for (const path of [`${resultsPath}:id`, formerPath] as const) {
    yield* router.add("GET", path, (request) => respond("results", "openai", () => serve(request)))
  }
}))
