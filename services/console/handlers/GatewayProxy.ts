/**
 * `/gateway/…`: the way of the playground to the ingress, so that pages need to reach nothing but the console. Whoever
 * is signed in may use it, with an API key of the gateway, which is passed on and not kept.
 */
import { ByteSize, Config, Effect, Layer, Option, Redacted } from "effect"
import {
  FetchHttpClient,
  type Headers,
  HttpClient,
  HttpClientRequest,
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { cookieName, keyHeader } from "../api/Admin.ts"
import { Sessions } from "../access/Sessions.ts"

const prefix = "/gateway"

const methods = ["GET", "POST", "DELETE"] as const
type Method = typeof methods[number]

/** What of the ingress is reached this way: the API, and not its health or metrics. */
const reachable = /^\/(?:v1|v1beta|v2)\//

/** As much as the ingress itself takes: 32 MiB. */
const maxBodyBytes = 32 * 1024 * 1024

const sentOn = ["content-type", "accept", "range", "vendor-version", "idempotency-key"]

const sentBack =
  /^(?:content-type|content-range|accept-ranges|retry-after|x-request-id|x-translation-warnings|x-ratelimit-.*)$/

/** What comes back was made by a model: it is data for the page that asked, and never a page itself. */
const asData = {
  "content-security-policy": "default-src 'none'; sandbox",
  "content-disposition": "attachment"
}

const pick = (headers: Headers.Headers, wanted: (name: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => wanted(name)))

const refusal = (status: number, type: string, message: string) =>
  HttpServerResponse.jsonUnsafe({ error: { message, type, param: null, code: null } }, { status })

/** The address at the ingress; `undefined` for one that is not reached this way. */
export const target = (gateway: URL, url: string): URL | undefined => {
  const base = gateway.pathname.replace(/\/$/, "")
  const text = `${gateway.origin}${base}${url.slice(prefix.length)}`
  if (!URL.canParse(text)) return undefined
  // parsed, for a path may lead out of what it seems to be in
  const parsed = new URL(text)
  const isReachable = parsed.pathname.startsWith(base) && reachable.test(parsed.pathname.slice(base.length))
  return isReachable && parsed.origin === gateway.origin ? parsed : undefined
}

/** Reads `CONSOLE_GATEWAY_URL`: where the console reaches an ingress (default `http://127.0.0.1:8080`). */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const sessions = yield* Sessions
  const client = yield* HttpClient.HttpClient
  const gateway = yield* Config.URL("CONSOLE_GATEWAY_URL").pipe(
    Config.withDefault(new URL("http://127.0.0.1:8080"))
  )

  const forward = Effect.fnUntraced(function*(method: Method, request: HttpServerRequest.HttpServerRequest) {
    const session = yield* sessions.find(Redacted.make(request.cookies[cookieName] ?? ""))
    if (Option.isNone(session)) return refusal(401, "authentication_error", "Sign in to the console first")
    const url = target(gateway, request.url)
    if (url === undefined) return refusal(404, "not_found_error", "The playground does not lead there")
    const { [keyHeader]: key, ...headers } = request.headers
    const body = method === "POST" ? new Uint8Array(yield* request.arrayBuffer) : undefined
    const sent = HttpClientRequest.make(method)(url, {
      headers: {
        ...pick(headers, (name) => sentOn.includes(name)),
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
      }
    }).pipe((sent) => body === undefined ? sent : HttpClientRequest.bodyUint8Array(sent, body, headers["content-type"]))
    const answer = yield* client.execute(sent)
    return HttpServerResponse.stream(answer.stream, {
      status: answer.status,
      headers: { ...pick(answer.headers, (name) => sentBack.test(name)), ...asData }
    })
  })

  const handle = (method: Method) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      forward(method, request).pipe(
        Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
        Effect.catchTags({
          JetStreamFailed: () =>
            Effect.succeed(
              refusal(503, "overloaded_error", "NATS, which knows the sessions, does not answer just now: try again")
            ),
          HttpServerError: () => Effect.succeed(refusal(413, "invalid_request_error", "The request is too large")),
          HttpClientError: () =>
            Effect.succeed(refusal(502, "upstream_error", `The gateway cannot be reached at ${gateway.origin}`))
        })
      ))
  for (const method of methods) yield* router.add(method, `${prefix}/*`, handle(method))
})).pipe(Layer.provide(FetchHttpClient.layer))
