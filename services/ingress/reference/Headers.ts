/** The headers of requests and responses, each described once. */
import { contentCodings } from "../../../shared/bounds/ContentCoding.ts"
import { sessionHeaders, strictTranslation, translationHeader } from "../../../shared/contract/ChatHeaders.ts"
import type { Parameter } from "./Route.ts"

const text = { type: "string" }
const count = { type: "integer", minimum: 0 }

const header = (description: string, schema: object, example: unknown) => ({ description, schema, example })

const limit = (kind: string) => header(`The key's limit of ${kind} per minute, if any.`, count, 600)
const remaining = (kind: string) => header(`The ${kind} remaining.`, count, 599)
const resetIn = header("Time until the limit is fully available again.", text, "350ms")
const dateTime = { type: "string", format: "date-time" }
const resetAt = header("When the limit is fully available again.", dateTime, "2026-11-21T12:00:00Z")

const limitHeaders = (nameOf: (kind: string, field: string) => string, reset: object) =>
  Object.fromEntries(["requests", "tokens"].flatMap((kind) => [
    [nameOf(kind, "limit"), limit(kind)],
    [nameOf(kind, "remaining"), remaining(kind)],
    [nameOf(kind, "reset"), reset]
  ]))

const limits = limitHeaders((kind, field) => `x-ratelimit-${field}-${kind}`, resetIn)
const anthropicLimits = limitHeaders((kind, field) => `anthropic-ratelimit-${kind}-${field}`, resetAt)

const common = {
  "x-request-id": header("The request's id. Quote it when you report a problem.", text, "req_66235382-a716"),
  "request-id": header("The same id, under the name that Anthropic's clients read.", text, "req_66235382-a716"),
  traceparent: header(
    "The trace of the request (W3C Trace Context), if traces are recorded.",
    text,
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  )
}

const answered = {
  "x-gateway-provider": header("The provider that answered.", text, "local"),
  "x-gateway-attempts": header(
    "Number of provider calls made for this request, including retries and fallbacks.",
    count,
    1
  ),
  "x-gateway-queue-ms": header("Time the request waited for a worker, in milliseconds.", count, 1),
  "x-gateway-token-count": header(
    "`estimated` if a tokenizer of the gateway counted the tokens, not the provider. Only in answers that count tokens.",
    text,
    "estimated"
  ),
  "idempotency-replayed": header(
    "`true` if an earlier request with the same idempotency key has been answered.",
    text,
    "true"
  ),
  "x-translation-warnings": header(
    "The fields of the request without effect, separated by `; `: each begins with its path, and may say what happened to it. " +
      "They are those that the provider or the built-in engine does not support, and unknown ones that it does not get. " +
      "Names at most 20, then `and <number> more`. Absent if every field has an effect or is refused.",
    text,
    "seed is not carried over; tools[0].function.strict is not carried over"
  )
}

const retry = {
  "retry-after": header("Time to wait before the next try, in seconds.", count, 2),
  "retry-after-ms": header("Time to wait before the next try, in milliseconds.", count, 1_500),
  "x-should-retry": header("`false` if the client should not retry by itself.", text, "false")
}

const file = {
  "accept-ranges": header("The unit of the `range` header.", text, "bytes"),
  etag: header("The file's entity tag. Files never change.", text, "\"task_10p1BSzrov2PDe4XZfLWPh5fYLyBmODm\""),
  "content-range": header("The part of the file in this response.", text, "bytes 0-1023/48213")
}

const location = { location: header("The URL of the task.", text, "/v1/video/generations/task_10p1BSzrov2PD") }

const preference = {
  "preference-applied": header(
    "`respond-async` if the gateway answered before the work was done.",
    text,
    "respond-async"
  )
}

const codings = {
  "accept-encoding": header("The content encodings that request bodies may have.", text, contentCodings.join(", "))
}

/** Every response header, by name. */
export const components = {
  ...common,
  ...limits,
  ...anthropicLimits,
  ...answered,
  ...retry,
  ...file,
  ...location,
  ...preference,
  ...codings
}

const refs = (names: ReadonlyArray<string>) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** References to the headers of each kind of response. */
export const of = {
  every: refs(Object.keys(common)),
  limits: refs(Object.keys(limits)),
  anthropicLimits: refs(Object.keys(anthropicLimits)),
  answered: refs(Object.keys(answered)),
  file: refs(Object.keys(file)),
  accepted: refs([...Object.keys(location), ...Object.keys(preference), "retry-after", "idempotency-replayed"]),
  task: refs([...Object.keys(location), "retry-after"]),
  waiting: refs(["retry-after"])
}

/** References to the headers of these names that are described here. */
export const named = (names: ReadonlyArray<string>) => refs(names.filter((name) => Object.hasOwn(components, name)))

type Description = readonly [description: string, example: unknown, schema?: object]

const session: Description = [
  "The session of the request. Of several providers the same one gets all its requests, because its cache holds their prompt.",
  "0199a7c2-5b1e-7d0c-9f4a-2f6f0e3a8c11"
]

const descriptions: Readonly<Record<string, Description>> = {
  traceparent: ["The trace of the request (W3C Trace Context).", common.traceparent.example],
  "x-stainless-timeout": [
    "The client's timeout, in seconds. Requests that cannot start in that time get 503.",
    600,
    { type: "number", exclusiveMinimum: 0 }
  ],
  "idempotency-key": [
    "Requests with the same idempotency key, API key and body are one piece of work for a day: the first one does it, and the " +
    "others get the same answer. It goes on without its client.",
    "order-1871",
    { type: "string", minLength: 1, maxLength: 255 }
  ],
  prefer: [
    "`respond-async`: answer immediately with a task, and make the answer in the background.",
    "wait=30",
    { type: "string" }
  ],
  "last-event-id": ["The `id` of the last event that the client has. By default the stream has all events.", "7"],
  range: ["The requested part of the file.", "bytes=0-1023"],
  "if-range": ["The etag of the file. `range` is ignored if it differs.", file.etag.example],
  "anthropic-beta": [
    "Beta features of the Messages API, forwarded to providers that use it.",
    "context-management-2025-06-27"
  ],
  ...Object.fromEntries(sessionHeaders.map((name) => [name, session])),
  [translationHeader]: [
    "`strict` rejects the request if a part of it cannot be translated for the model's provider.",
    strictTranslation,
    { type: "string", enum: [strictTranslation] }
  ]
}

const parameter = (name: string, description: string, example: unknown, schema: object = text): Parameter => ({
  name,
  in: "header",
  description,
  required: false,
  schema: { ...schema, examples: [example] }
})

/** A request header, as a parameter. */
export const request = (name: string): Parameter =>
  parameter(name, ...(descriptions[name] ?? ["Forwarded to the provider.", ""]))

const version = { type: "string", minLength: 1 }

/** One of several headers with the version of the format. The first is the usual one. */
export const versionOf = (name: string, index: number, all: ReadonlyArray<string>): Parameter => {
  const others = all.filter((other) => other !== name).join(" or ")
  const description =
    `The version of the format: any text, usually a date. Required unless ${others} is sent: a request without any of them ` +
    "gets 400 `invalid_version`."
  const example = "2023-06-01"
  return { ...parameter(name, description, example, version), ...(index === 0 ? { example } : {}) }
}
