/** `/openapi.json` and `/docs`: the API reference for programs and for people. */
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { document } from "../reference/Document.ts"
import * as Page from "../reference/Page.ts"

export const layer = Layer.mergeAll(
  HttpRouter.add("GET", "/openapi.json", HttpServerResponse.jsonUnsafe(document)),
  Page.layer
)
