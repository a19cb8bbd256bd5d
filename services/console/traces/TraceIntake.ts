/**
 * `/otlp/v1/traces`: receives traces from services as OTLP/HTTP JSON, authenticated by a separate token. The path exists only if
 * the console keeps traces.
 */
import { ByteSize, Effect, Option, Redacted } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Traces } from "./Traces.ts"

/** Several times the largest batch of a service. */
const maxBodyBytes = 4 * 1024 * 1024

const refusal = (status: number, message: string) => HttpServerResponse.jsonUnsafe({ message }, { status })

const taken = HttpServerResponse.jsonUnsafe({})

const bearer = /^Bearer (\S+)$/i

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const { kept } = yield* Traces
  if (Option.isNone(kept)) return
  const { inbox, token } = kept.value
  yield* router.add(
    "POST",
    "/otlp/v1/traces",
    Effect.gen(function*() {
      const request = yield* HttpServerRequest.HttpServerRequest
      const given = bearer.exec(request.headers["authorization"] ?? "")?.[1] ?? ""
      if (!token.matches(Redacted.make(given))) {
        return refusal(401, "Invalid token. Send CONSOLE_OTLP_TOKEN as a bearer token")
      }
      if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) {
        return refusal(415, "Traces must be application/json: set OTEL_EXPORTER_OTLP_PROTOCOL to http/json")
      }
      if (request.headers["content-encoding"] !== undefined) return refusal(415, "Traces must not be compressed")
      const body = Buffer.from(yield* request.arrayBuffer)
      return inbox.add(body) ? taken : refusal(400, "Invalid OTLP trace: send an ExportTraceServiceRequest as JSON")
    }).pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
      Effect.catchTag("HttpServerError", () => Effect.succeed(refusal(413, "The traces are larger than 4 MiB")))
    )
  )
}))
