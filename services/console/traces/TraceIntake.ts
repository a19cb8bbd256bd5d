/**
 * `/otlp/v1/traces`: where services send their traces, OTLP over HTTP as JSON, with a token of its own. There is no such
 * path unless the console keeps traces.
 */
import { ByteSize, Effect, Option, Redacted, Schema } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Traces } from "./Traces.ts"

/** Of one delivery: several times what the largest batch of a service is. */
const maxBodyBytes = 4 * 1024 * 1024

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

const refusal = (status: number, message: string) => HttpServerResponse.jsonUnsafe({ message }, { status })

const taken = HttpServerResponse.jsonUnsafe({})

const bearer = /^Bearer (\S+)$/i

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const { kept } = yield* Traces
  if (Option.isNone(kept)) return
  const { store, token } = kept.value
  yield* router.add(
    "POST",
    "/otlp/v1/traces",
    Effect.gen(function*() {
      const request = yield* HttpServerRequest.HttpServerRequest
      const given = bearer.exec(request.headers["authorization"] ?? "")?.[1] ?? ""
      if (!token.matches(Redacted.make(given))) return refusal(401, "CONSOLE_OTLP_TOKEN is needed as a bearer token")
      if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
        return refusal(415, "Traces are taken as application/json: set OTEL_EXPORTER_OTLP_PROTOCOL to http/json")
      }
      if (request.headers["content-encoding"] !== undefined) return refusal(415, "Traces are taken uncompressed")
      const body = Option.getOrUndefined(parse(yield* request.text))
      return store.add(body) ? taken : refusal(400, "This is no OTLP trace: an ExportTraceServiceRequest as JSON")
    }).pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
      Effect.catchTag("HttpServerError", () => Effect.succeed(refusal(413, "The traces are more than 4 MiB")))
    )
  )
}))
