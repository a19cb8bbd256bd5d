/** `GET /v1/models`: the models that a key may use, in the form that official clients expect. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { Models } from "../../../shared/catalogue/Models.ts"
import { ModelNotFound } from "../../../shared/contract/JobError.ts"
import { allows } from "../../../shared/keys/ApiKey.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { authenticate } from "../request/Authentication.ts"
import { respond } from "./Respond.ts"

const entry = (id: string) => ({ id, object: "model", created: 0, owned_by: "model-gateway" })

export const layer = Layer.unwrap(Effect.gen(function*() {
  const keys = yield* KeyRing
  const offered = yield* Models
  // the router also adds the path without the star; a model's name may contain slashes
  return HttpRouter.add(
    "GET",
    "/v1/models/*",
    (request) =>
      respond("models", "openai", (record) =>
        Effect.gen(function*() {
          const key = yield* authenticate(keys, request.headers, "anthropic")
          record.setKey(key.id)
          const { "*": encoded = "" } = yield* HttpRouter.params
          const id = PathTemplate.decodePath(encoded)
          const names = [...offered.current().models.keys()].filter((name) => allows(key, name))
          if (id === "") {
            return HttpServerResponse.jsonUnsafe({ object: "list", data: names.map(entry), has_more: false })
          }
          if (!names.includes(id)) return yield* new ModelNotFound({ model: id })
          return HttpServerResponse.jsonUnsafe(entry(id))
        }))
  )
}))
