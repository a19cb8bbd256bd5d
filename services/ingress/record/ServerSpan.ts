/** Spans of requests, by OpenTelemetry's conventions for HTTP servers. They contain the route instead of the path. */
import { Clock, Context, Effect, Option, Tracer } from "effect"
import * as Attributes from "../../../shared/telemetry/Attributes.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"

/** Names are in lower case. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

export interface RequestHead {
  readonly method: string
  readonly headers: RequestHeaders
  /** The template of its route; `undefined` if no route matches. */
  readonly route: string | undefined
  /** The client's address, unless it has already disconnected. */
  readonly remoteAddress: string | undefined
}

export interface ServerSpans {
  /** Starts a span, in the client's trace if it sends one. */
  readonly begin: (request: RequestHead) => Tracer.Span
  /** The clock of spans, in epoch nanoseconds. */
  readonly now: () => bigint
}

export const make: Effect.Effect<ServerSpans> = Effect.gen(function*() {
  const tracer = yield* Tracer.Tracer
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeNanosUnsafe()
  return {
    now,
    begin: ({ headers, method, remoteAddress, route }) => {
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
      if (remoteAddress !== undefined) span.attribute(Attributes.name.clientAddress, remoteAddress)
      return span
    }
  }
})
