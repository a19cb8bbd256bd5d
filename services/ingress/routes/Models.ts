/** `GET /v1/models`: the models that a key may use, in the form that official clients expect. */
import { Effect } from "effect"
import { type Headers, HttpRouter, HttpServerResponse } from "effect/http"
import { Models } from "../../../shared/catalogue/Models.ts"
import { ModelNotFound } from "../../../shared/contract/JobError.ts"
import { allows } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import { authenticate } from "../request/Authentication.ts"
import { respond } from "./Respond.ts"

const entry = (id: string) => ({ id, object: "model", created: 0, owned_by: "model-gateway" })

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const serve = Effect.fnUntraced(function*(headers: Headers.Headers, record: RequestRecord) {
    const key = yield* authenticate(keys, headers, "anthropic")
    record.setKey(key.id)
    const { "*": encoded = "" } = yield* HttpRouter.params
    const id = PathTemplate.decodePath(encoded)
    const names = [...offered.current().models.keys()].filter((name) => allows(key, name))
    if (id === "") return HttpServerResponse.jsonUnsafe({ object: "list", data: names.map(entry), has_more: false })
    if (!names.includes(id)) return yield* new ModelNotFound({ model: id })
    return HttpServerResponse.jsonUnsafe(entry(id))
  })
  // the router also adds the path without the star; a model's name may contain slashes
  yield* router.add(
    "GET",
    "/v1/models/*",
    ({ headers }) => respond("models", "openai", (record) => serve(headers, record))
  )
}))
