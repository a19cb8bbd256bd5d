/**
 * `/gateway/…`: the playground's proxy to the ingress, so that browsers need to reach only the console. It requires a session
 * and a gateway API key. The key is forwarded and not stored.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { type Cause, Config, Effect, Fiber, Layer, Option, Queue, Redacted, Schema, Stream } from "effect"
import {
  type Headers,
  HttpClient,
  HttpClientRequest,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { cookieName, keyHeader } from "../api/Admin.ts"
import { Sessions } from "../access/Sessions.ts"

const prefix = "/gateway"

const methods = ["GET", "POST", "DELETE"] as const
type Method = typeof methods[number]

/** Forwarded paths: the API, but not health or metrics. */
const reachable = /^\/(?:v1|v1beta|v2)\//

/** The ingress's own limit: 32 MiB. */
const maxBodyBytes = 32 * 1024 * 1024

const requestHeaders = ["content-type", "accept", "range", "vendor-version", "idempotency-key"]

const responseHeaders =
  /^(?:content-type|content-range|accept-ranges|retry-after|x-request-id|x-translation-warnings|x-ratelimit-.*)$/

/** Model output is data for the playground: browsers must never render it as a page of its own. */
const asData = { "content-security-policy": "default-src 'none'; sandbox", "content-disposition": "attachment" }

const pick = (headers: Headers.Headers, wanted: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => wanted(name)))

const refuse = (status: number, type: string, message: string) =>
  Effect.succeed(HttpServerResponse.jsonUnsafe({ error: { message, type, param: null, code: null } }, { status }))

class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", {}) {}

/** The body, as it arrives. */
const bounded = <E>(body: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E | BodyTooLarge> =>
  Stream.suspend(() => {
    let size = 0
    return Stream.tap(body, (piece) => {
      size += piece.length
      return size > maxBodyBytes ? Effect.fail(new BodyTooLarge()) : Effect.void
    })
  })

/** The URL at the ingress; `undefined` for paths that are not forwarded. */
export const target = (gateway: URL, url: string): URL | undefined => {
  const base = gateway.pathname.replace(/\/$/, "")
  const text = `${gateway.origin}${base}${url.slice(prefix.length)}`
  if (!URL.canParse(text)) return undefined
  // check the parsed URL, because a raw path can leave its folder with `..`
  const parsed = new URL(text)
  const isReachable = parsed.pathname.startsWith(base) && reachable.test(parsed.pathname.slice(base.length))
  return isReachable && parsed.origin === gateway.origin ? parsed : undefined
}

/** Reads `CONSOLE_GATEWAY_URL`, the URL of an ingress for the console (default `http://127.0.0.1:8080`). */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const sessions = yield* Sessions
  const client = yield* HttpClient.HttpClient
  const gateway = yield* Config.URL("CONSOLE_GATEWAY_URL").pipe(
    Config.withDefault(new URL("http://127.0.0.1:8080"))
  )

  /**
   * Forwards the body while it arrives, and answers after its end: a client that is still sending might miss the answer. Bytes that
   * arrive after the ingress has stopped reading are dropped.
   */
  const relay = Effect.fnUntraced(function*(
    sent: HttpClientRequest.HttpClientRequest,
    request: HttpServerRequest.HttpServerRequest
  ) {
    const { "content-length": length = "0", "content-type": contentType, "transfer-encoding": encoding } =
      request.headers
    const pieces = yield* Queue.bounded<Uint8Array, Cause.Done>(1)
    const drop = Queue.shutdown(pieces)
    const arrival = yield* bounded(request.stream).pipe(
      Stream.runForEach((piece) => Queue.offer(pieces, piece)),
      Effect.andThen(Queue.end(pieces)),
      Effect.forkChild
    )
    const body = Stream.ensuring(Stream.fromQueue(pieces), drop)
    const contentLength = encoding === undefined ? Number(length) : undefined
    const answer = yield* client.execute(HttpClientRequest.bodyStream(sent, body, { contentType, contentLength })).pipe(
      Effect.onError(() => drop),
      Effect.result,
      Effect.raceFirst(Effect.andThen(Fiber.join(arrival), Effect.never))
    )
    yield* Fiber.join(arrival)
    return yield* Effect.fromResult(answer)
  })

  const unreachable = `The gateway does not answer at ${gateway.origin}`

  const forward = Effect.fnUntraced(function*(method: Method, request: HttpServerRequest.HttpServerRequest) {
    const session = yield* sessions.find(Redacted.make(request.cookies[cookieName] ?? ""))
    if (Option.isNone(session)) {
      return yield* refuse(401, "authentication_error", "Not signed in. Sign in to the console")
    }
    const url = target(gateway, request.url)
    if (url === undefined) {
      return yield* refuse(404, "not_found_error", "Not found. The playground forwards only paths of the API")
    }
    const { [keyHeader]: key, ...headers } = request.headers
    const sent = HttpClientRequest.make(method)(url, {
      headers: {
        ...pick(headers, (name) => requestHeaders.includes(name)),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
      }
    })
    const answer = yield* (method === "POST" ? relay(sent, request) : client.execute(sent))
    return HttpServerResponse.stream(answer.stream, {
      status: answer.status,
      headers: { ...pick(answer.headers, (name) => responseHeaders.test(name)), ...asData }
    })
  })

  const handle = (method: Method) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      forward(method, request).pipe(
        Effect.catchTags({
          JetStreamFailed: () =>
            refuse(503, "overloaded_error", "NATS, which stores the sessions, does not answer. Try again"),
          BodyTooLarge: () => refuse(413, "invalid_request_error", "The request is larger than 32 MiB"),
          HttpServerError: () => refuse(400, "invalid_request_error", "The request is incomplete"),
          HttpClientError: () => refuse(502, "upstream_error", `${unreachable}. Check CONSOLE_GATEWAY_URL`)
        })
      ))
  for (const method of methods) yield* router.add(method, `${prefix}/*`, handle(method))
})).pipe(Layer.provide(
  // ingress limits the time of an answer
  NodeHttpClient.layerUndiciOptions({ headersTimeout: 0, bodyTimeout: 0 })
))
