/** The headers of answers and requests, each described once. */
import { versionPattern } from "../../../shared/contract/operations/Messages.ts"
import { strictTranslation, translationHeader } from "../../../shared/contract/Translation.ts"
import type { Parameter } from "./Route.ts"

const text = { type: "string" }
const count = { type: "integer", minimum: 0 }

const header = (description: string, schema: object, example: unknown) => ({ description, schema, example })

const limits = Object.fromEntries(["requests", "tokens"].flatMap((kind) => [
  [`x-ratelimit-limit-${kind}`, header(`The key's limit of ${kind} per minute, where it has one.`, count, 600)],
  [`x-ratelimit-remaining-${kind}`, header(`How many ${kind} are left of it.`, count, 599)],
  [`x-ratelimit-reset-${kind}`, header("How long until all of it is free again.", text, "350ms")]
]))

const anthropicLimits = Object.fromEntries(["requests", "tokens"].flatMap((kind) => [
  [`anthropic-ratelimit-${kind}-limit`, header(`The key's limit of ${kind} per minute, where it has one.`, count, 600)],
  [`anthropic-ratelimit-${kind}-remaining`, header(`How many ${kind} are left of it.`, count, 599)],
  [
    `anthropic-ratelimit-${kind}-reset`,
    header("When all of it is free again.", { type: "string", format: "date-time" }, "2026-11-21T12:00:00Z")
  ]
]))

const common = {
  "x-request-id": header("The request's id. Name it when you ask about the request.", text, "req_66235382-a716"),
  "request-id": header("The same, as some clients look for it.", text, "req_66235382-a716"),
  traceparent: header(
    "The trace of the request, where traces are recorded (W3C Trace Context).",
    text,
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  )
}

const answered = {
  "x-gateway-provider": header("The provider that answered.", text, "local"),
  "x-gateway-attempts": header("How many calls to providers it took.", count, 1),
  "x-gateway-queue-ms": header("How long nobody worked on the request, in milliseconds.", count, 1),
  "x-translation-warnings": header(
    "What of the request could not be carried over to the provider, by the paths of its fields.",
    text,
    "logit_bias is not carried over"
  )
}

const retry = {
  "retry-after": header("When to come again, in seconds.", count, 2),
  "retry-after-ms": header("The same in milliseconds.", count, 1_500),
  "x-should-retry": header("`false` where a client should not wait that long.", text, "false")
}

const file = {
  "accept-ranges": header("Parts can be asked for with `range`.", text, "bytes"),
  etag: header("Of the file, which never changes.", text, "\"task_10p1BSzrov2PDe4XZfLWPh5fYLyBmODm\""),
  "content-range": header("Which part of the file this is.", text, "bytes 0-1023/48213")
}

const location = { location: header("Where to ask for the task.", text, "/v1/video/generations/task_10p1BSzrov2PD") }

/** All of them, by their names. */
export const components = {
  ...common,
  ...limits,
  ...anthropicLimits,
  ...answered,
  ...retry,
  ...file,
  ...location
}

const refs = (names: ReadonlyArray<string>) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** Those that answers of one kind carry, as references. */
export const of = {
  every: refs(Object.keys(common)),
  limits: refs(Object.keys(limits)),
  anthropicLimits: refs(Object.keys(anthropicLimits)),
  answered: refs(Object.keys(answered)),
  file: refs(Object.keys(file)),
  task: refs([...Object.keys(location), "retry-after"]),
  waiting: refs(["retry-after"])
}

/** Those of these names that are described here. */
export const named = (names: ReadonlyArray<string>) => refs(names.filter((name) => Object.hasOwn(components, name)))

const parameter = (name: string, description: string, example: unknown, schema: object = text): Parameter => ({
  name,
  in: "header",
  description,
  required: false,
  schema: { ...schema, examples: [example] }
})

const descriptions: Readonly<Record<string, readonly [description: string, example: string, schema?: object]>> = {
  "anthropic-beta": [
    "Features of the format that are not in it for good, passed on to a provider of that format.",
    "context-management-2025-06-27"
  ],
  [translationHeader]: [
    "`strict` refuses a request of which the model's provider could not do something.",
    strictTranslation,
    { type: "string", enum: [strictTranslation] }
  ]
}

/** A header of requests, as a parameter. */
export const request = (name: string): Parameter =>
  parameter(name, ...(descriptions[name] ?? ["Passed on to the provider.", ""]))

const version = { type: "string", pattern: versionPattern.source }

/** One of several headers that name the version of the format, of which the first is the usual one. */
export const versionOf = (name: string, index: number, all: ReadonlyArray<string>): Parameter => {
  const others = all.filter((other) => other !== name).join(" or ")
  const description =
    `The version of the format, as a date. Required, unless ${others} is sent: without any of them the ` +
    "request is refused with 400, `invalid_version`."
  const example = "2023-06-01"
  return { ...parameter(name, description, example, version), ...(index === 0 ? { example } : {}) }
}

export const traceparent = parameter(
  "traceparent",
  "The trace that the request belongs to (W3C Trace Context).",
  common.traceparent.example
)

export const patience = parameter(
  "x-stainless-timeout",
  "How long the client waits, in seconds. What cannot begin in that time is refused with 503.",
  600,
  { type: "number", exclusiveMinimum: 0 }
)

export const idempotency = parameter(
  "idempotency-key",
  "Requests of the same key, API key and body make one task.",
  "order-1871",
  { type: "string", minLength: 1, maxLength: 255 }
)

export const range = parameter("range", "The part of the file that is wanted.", "bytes=0-1023")

export const ifRange = parameter("if-range", "The etag of the file that the part is of.", file.etag.example)
