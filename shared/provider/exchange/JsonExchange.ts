/** Exchanges JSON with providers whose dialect is not the client's. The answer is decoded by a schema once it is complete. */
import { Effect, Option, Predicate, Schema } from "effect"
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import * as Json from "../json/Json.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import type { Sink } from "../transport/Sink.ts"
import { type AnswerReader, maxWholeBytes } from "./AnswerReader.ts"
import { bearer, exchange, type ExchangeOptions, type ExchangeTools } from "./Exchange.ts"
import * as ProviderError from "./ProviderError.ts"

export interface JsonRequest {
  /** The path below the provider's `baseUrl`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body, posted as JSON. Without `body` and `form` the request is a GET. */
  readonly body?: unknown
  readonly form?: FormData
  /** Replaces the catalogue's timeouts if it is shorter. Milliseconds. */
  readonly withinMs?: number
}

/** A sink that takes nothing: the caller writes the client's answer later. */
const noSink: Sink = { hasStarted: false, start: () => undefined, write: () => true, onDrain: () => undefined }

const encode = (body: unknown, form: FormData | undefined) => {
  if (form === undefined) {
    return Effect.succeed({
      body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)),
      contentType: "application/json"
    })
  }
  return encodeForm(form)
}

/** The bytes of a form, and their content type. */
export const encodeForm = (form: FormData) =>
  Effect.promise(async () => {
    const encoded = new Response(form)
    return {
      body: new Uint8Array(await encoded.arrayBuffer()),
      contentType: encoded.headers.get("content-type") ?? "multipart/form-data"
    }
  })

/** Makes the function for exchanges whose answers have this schema. */
export const make = <Answer>(
  tools: ExchangeTools,
  schema: Schema.Codec<Answer, unknown>,
  authorize: ExchangeOptions["authorize"] = bearer
) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  return Effect.fnUntraced(function*(
    endpoint: Endpoint,
    { body, form, ...request }: JsonRequest
  ): Effect.fn.Return<Answer, JobError> {
    let answer: Option.Option<Answer> = Option.none()
    const reader = (secrets: ReadonlyArray<string>): AnswerReader => ({
      head: (status, contentType) => ({ status, contentType, headers: {} }),
      holdBytes: () => maxWholeBytes,
      whole: (bytes) => {
        const text = Buffer.from(bytes).toString()
        answer = decode(text)
        if (Option.isSome(answer)) return []
        // some servers return errors with status 200
        const json = Json.parse(text)
        return Predicate.hasProperty(json, "error") && Predicate.isReadonlyObject(json.error)
          ? ProviderError.inAnswer(endpoint.name, json, secrets)
          : ProviderFailed.malformed(endpoint.name)
      },
      usage: () => undefined,
      ends: () => []
    })
    const encoded = yield* encode(body, form)
    yield* exchange({
      ...tools,
      authorize,
      call: { endpoint },
      sink: noSink,
      request: { ...request, ...encoded, streams: false },
      reader
    })
    return yield* Effect.orDie(Effect.fromOption(answer))
  })
}
