/** Describes undecodable requests to the admin API as RFC 9457 problem details, with an error per field. */
import { Effect, type Layer } from "effect"
import { HttpApiError, HttpApiMiddleware } from "effect/http-api"
import * as SchemaErrors from "../../shared/contract/SchemaErrors.ts"

/** Effect's text for a body that is not JSON. */
const notJson = "Expected a valid JSON body"

export const layer: Layer.Layer<HttpApiMiddleware.ProblemDetails> = HttpApiMiddleware.layerSchemaErrorTransform(
  HttpApiMiddleware.ProblemDetails,
  (error) => {
    const { cause, kind } = error
    // a response that does not encode is the console's defect: only the log describes it
    if (kind === "Body" || kind === "ResponseHeaders") return Effect.fail(error)
    const mistakes = SchemaErrors.all(cause.issue, undefined).map(({ message, path }) => ({
      path,
      message: message === notJson ? "is not valid JSON" : message
    }))
    const whole = kind === "Payload" ? "The request body" : "The request"
    return Effect.fail(
      new HttpApiError.BadRequestProblem({
        detail: mistakes.map((mistake) => SchemaErrors.formatError(mistake, whole)).join("; "),
        errors: mistakes.map(({ message, path }) => ({
          path: [kind.toLowerCase(), ...path.map((key) => typeof key === "number" ? key : String(key))],
          message
        }))
      })
    )
  }
)
