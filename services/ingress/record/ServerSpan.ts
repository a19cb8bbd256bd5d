/** Spans of requests, by OpenTelemetry's conventions for HTTP servers. They contain the route instead of the path. */
import { Clock, Context, Effect, Option, Tracer } from "effect"
import type { Headers, HttpServerRequest } from "effect/http"
import * as Attributes from "../../../shared/telemetry/Attributes.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"

export interface ServerSpans {
  /** Starts a span, in the client's trace if it sends one. `route` is `undefined` if no route matches. */
  readonly begin: (
    request: HttpServerRequest.HttpServerRequest,
    headers: Headers.Headers,
    route: string | undefined
  ) => Tracer.Span
  /** The clock of spans, in epoch nanoseconds. */
  readonly now: () => bigint
}

export const make: Effect.Effect<ServerSpans> = Effect.gen(function*() {
  const tracer = yield* Tracer.Tracer
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeNanosUnsafe()
  return {
    now,
    begin: ({ method, remoteAddress }, headers, route) => {
      const { parent } = TraceParent.asParent(headers["traceparent"])
      const span = tracer.span({
        name: route === undefined ? method : `${method} ${route}`,
        kind: "server",
        parent: Option.fromUndefinedOr(parent),
        annotations: Context.empty(),
        links: [],
        startTime: now(),
        root: false,
        sampled: parent?.sampled ?? true
      })
      span.attribute(Attributes.name.httpMethod, method)
      span.attribute(Attributes.name.urlScheme, "http")
      span.attribute(Attributes.name.urlPath, route ?? "/")
      if (route !== undefined) span.attribute(Attributes.name.httpRoute, route)
      const { host, "user-agent": userAgent } = headers
      if (host !== undefined) span.attribute(Attributes.name.serverAddress, host)
      if (userAgent !== undefined) span.attribute(Attributes.name.userAgent, userAgent)
      if (Option.isSome(remoteAddress)) span.attribute(Attributes.name.clientAddress, remoteAddress.value)
      return span
    }
  }
})
