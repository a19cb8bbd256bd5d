/** `GET /v1/models` and `GET /v1beta/models`: the models that a key may use, in the form that each vendor's clients expect. */
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Models } from "../../../shared/catalogue/Models.ts"
import { ModelNotFound } from "../../../shared/contract/JobError.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { modelPaths } from "../paths/RouteTemplate.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import { Admission } from "../request/Admission.ts"
import { authenticate } from "../request/Authentication.ts"
import { formOf, type ModelForm } from "./ModelForms.ts"
import { respond } from "../answer/Respond.ts"

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const offered = yield* Models
  const admission = yield* Admission
  const serve = Effect.fnUntraced(function*(
    { headers, url }: HttpServerRequest.HttpServerRequest,
    { dialect, list, one }: ModelForm,
    record: RequestRecord
  ) {
    const key = yield* authenticate(keys, { headers, url }, dialect === "gemini" ? dialect : "anthropic")
    record.setKey(key.id)
    const { "*": encoded = "" } = yield* HttpRouter.params
    const id = PathTemplate.decodePath(encoded)
    const entries = [...offered.current().models].filter(([name]) => admission.allows(key, name))
    if (id === "") {
      const query = new URL(url, "http://gateway").searchParams
      return HttpServerResponse.jsonUnsafe(yield* Effect.fromResult(list(entries, query)))
    }
    const entry = entries.find(([name]) => name === id)
    return entry === undefined ? yield* new ModelNotFound({ model: id }) : HttpServerResponse.jsonUnsafe(one(entry))
  })
  // the router also adds the path without the star; a model's name may contain slashes
  yield* Effect.forEach(modelPaths, (path) =>
    router.add("GET", `${path}/*`, (request) => {
      const form = formOf(path, request.headers)
      return respond("models", form.dialect, (record) => serve(request, form, record))
    }), { discard: true })
}))
