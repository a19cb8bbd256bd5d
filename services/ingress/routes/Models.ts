/** `GET /v1/models`: the models that a key may use, in the form that official clients expect. */
import { Effect } from "effect"
import { type Headers, HttpRouter, HttpServerResponse } from "effect/http"
import { Models, type OfferedModel } from "../../../shared/catalogue/Models.ts"
import { ModelNotFound } from "../../../shared/contract/JobError.ts"
import { allows } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import { authenticate } from "../request/Authentication.ts"
import { respond } from "./Respond.ts"

const entry = ([id, { description }]: [string, OfferedModel]) => ({
  id,
  object: "model",
  created: 0,
  owned_by: "model-gateway",
  ...(description === undefined ? {} : { description })
})

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const serve = Effect.fnUntraced(function*(headers: Headers.Headers, record: RequestRecord) {
    const key = yield* authenticate(keys, headers, "anthropic")
    record.setKey(key.id)
    const { "*": encoded = "" } = yield* HttpRouter.params
    const id = PathTemplate.decodePath(encoded)
    const { models } = offered.current()
    const entries = [...models].filter(([name]) => allows(key, name)).map(entry)
    if (id === "") return HttpServerResponse.jsonUnsafe({ object: "list", data: entries, has_more: false })
    const model = entries.find((entry) => entry.id === id)
    return model === undefined ? yield* new ModelNotFound({ model: id }) : HttpServerResponse.jsonUnsafe(model)
  })
  // the router also adds the path without the star; a model's name may contain slashes
  yield* router.add(
    "GET",
    "/v1/models/*",
    ({ headers }) => respond("models", "openai", (record) => serve(headers, record))
  )
}))
