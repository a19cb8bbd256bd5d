/** One exchange of JSON with a provider whose dialect is not the client's: sent whole, and read whole before it is looked at. */
import { Effect, Option, Predicate, Redacted, Schema } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import * as TraceParent from "../../telemetry/TraceParent.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import * as ProviderError from "./ProviderError.ts"
import * as Json from "../json/Json.ts"
import type { Secrets } from "../transport/Secrets.ts"
import type { Upstream } from "../transport/Upstream.ts"

/** What an exchange needs. */
export interface Tools {
  readonly upstream: Upstream["Service"]
  readonly secrets: Secrets["Service"]
}

export interface JsonRequest {
  /** Below the provider's `baseUrl`. */
  readonly path: string
  /** What authenticates, from the provider's key. */
  readonly authorize: (key: string) => Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Posted as JSON, or as a form; without either it is a GET. */
  readonly body?: unknown
  readonly form?: FormData
  /** Instead of the catalogue's, where those are shorter. Milliseconds. */
  readonly withinMs?: number
}

/** The key as every provider takes it that has no wish of its own. */
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** An answer that is larger is not read: some hundred vectors or ten pictures. */
const maxAnswerBytes = 64 * 1024 * 1024

interface Posted {
  readonly bytes: Uint8Array
  readonly contentType: string
}

const postedOf = ({ body, form }: Pick<JsonRequest, "body" | "form">): Effect.Effect<Posted | undefined> => {
  if (form === undefined) {
    return Effect.succeed(
      body === undefined ? undefined : { bytes: Buffer.from(JSON.stringify(body)), contentType: "application/json" }
    )
  }
  return Effect.promise(async () => {
    const encoded = new Response(form)
    return {
      bytes: new Uint8Array(await encoded.arrayBuffer()),
      contentType: encoded.headers.get("content-type") ?? "multipart/form-data"
    }
  })
}

/** Exchanges whose answer is of this schema. */
export const make = <Answer>(
  { secrets: keys, upstream }: Tools,
  schema: Schema.Codec<Answer, unknown>
) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return Effect.fnUntraced(function*(
    endpoint: Endpoint.Endpoint,
    { authorize, headers, path, withinMs = Infinity, ...content }: JsonRequest
  ): Effect.fn.Return<Answer, JobError> {
    const key = Option.map(yield* Endpoint.keyOf(endpoint, keys), Redacted.value)
    const traceparent = yield* TraceParent.current
    const malformed = () => ProviderFailed.malformed(endpoint.name)
    const timeouts = Endpoint.timeoutsOf(endpoint)
    const pieces: Array<Uint8Array> = []
    let size = 0
    let head: { readonly status: number; readonly headers: IncomingHttpHeaders } | undefined
    const posted = yield* postedOf(content)
    yield* upstream.exchange({
      provider: endpoint.name,
      method: posted === undefined ? "GET" : "POST",
      url: new URL(`${endpoint.provider.baseUrl}${path}`),
      headers: {
        "accept": "application/json",
        ...(posted === undefined ? {} : { "content-type": posted.contentType }),
        ...Option.match(key, { onNone: () => ({}), onSome: authorize }),
        ...headers,
        ...(traceparent === undefined ? {} : { traceparent })
      },
      ...(posted === undefined ? {} : { body: posted.bytes }),
      firstByteMs: Math.min(timeouts.firstByteMs, withinMs),
      idleMs: timeouts.idleMs,
      totalMs: Math.min(timeouts.totalMs, withinMs)
    }, (control) => ({
      onHead: (status, headers) => {
        head = { status, headers }
      },
      onData: (chunk) => {
        pieces.push(chunk)
        size += chunk.length
        if (size > maxAnswerBytes) control.fail(malformed())
      }
    }))
    const text = Buffer.concat(pieces, size).toString()
    const { headers: answered, status } = head ?? { headers: {}, status: 0 }
    const secrets = [Option.getOrElse(key, () => ""), endpoint.provider.baseUrl ?? ""]
    if (status < 200 || status >= 300) {
      return yield* yield* ProviderError.fromAnswer(endpoint.name, status, answered, text, secrets)
    }
    return yield* Effect.mapError(Effect.fromOption(decode(text)), () => {
      // some providers say 200 and mean it not
      const body = Json.parse(text)
      return Predicate.hasProperty(body, "error") && Predicate.isReadonlyObject(body.error)
        ? ProviderError.inAnswer(endpoint.name, body, secrets)
        : malformed()
    })
  })
}
