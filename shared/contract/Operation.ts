/**
 * The definition of an operation of the API: one value from which the routes, the job subject, the decoder, the OpenAPI document, the
 * span and metric names and the shape of errors are derived.
 */
import { Schema } from "effect"

/** The worker services, one per kind of model. Each has its own stream of jobs and scales independently. */
export const workloads = ["chat", "images", "video", "embeddings", "rerank", "speech"] as const
export type Workload = typeof workloads[number]

/** The name of a pool: a part of a workload with its own queue and workers. Valid as a token of a NATS subject. */
export const PoolName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9-]{1,32}$/u, { expected: "lower case letters, digits and -, at most 32 of them" })
)

/** The API whose shape of errors clients of the operation expect. `responses` differs from `openai` only in streams. */
export type Dialect = "openai" | "responses" | "anthropic" | "gemini" | "cohere"

/** The status of a task: `queued` → `in_progress` → `completed` | `failed`; `cancelled` from either of the first two. */
export const TaskStatus = Schema.Literals(["queued", "in_progress", "completed", "failed", "cancelled"])
export type TaskStatus = typeof TaskStatus.Type

/** The fields of a decoded request that ingress reads. */
export interface RequestBody {
  /** Absent if the path names the model. */
  readonly model?: string | null | undefined
  readonly stream?: boolean | null | undefined
  /** `sse` for a stream of events, in requests for speech. */
  readonly stream_format?: string | null | undefined
  /** How many results the client wants. Each result of a task is a piece of work of its own. */
  readonly n?: number | null | undefined
}

/** An example of a request and its answer. */
export interface Example {
  readonly summary: string
  /** The model: part of the path if the path names it, otherwise of the body. */
  readonly model: string
  /** The body without the model. */
  readonly body: Readonly<Record<string, unknown>>
  /** Whether the request is sent as `multipart/form-data`. */
  readonly isForm?: boolean
  /** A JSON value, or the text of server-sent events. Absent if the answer is of another type. */
  readonly answer?: object | string
}

/** The text of server-sent events, for examples. */
export const eventsOf = (...events: ReadonlyArray<object>): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")

/** The text of server-sent events that are named by their types. */
export const namedEventsOf = (
  ...events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): string => events.map((event) => `event: ${event.type}\n${eventsOf(event)}`).join("")

export interface Operation {
  /** The name in spans, metrics and jobs, and the `operationId` in OpenAPI. */
  readonly name: string
  readonly summary: string
  /** CommonMark. */
  readonly description: string
  /** At least one example for each form of the request and of the answer, by its name in the OpenAPI document. */
  readonly examples: Readonly<Record<string, Example>>
  /**
   * `{model}` stands for the model's name, which may contain slashes and overrides the name in the body. The documentation
   * shows the first path; the others are those that official clients use.
   */
  readonly paths: readonly [`/${string}`, ...Array<`/${string}`>]
  /** The workloads whose models can serve the operation. */
  readonly workloads: readonly [Workload, ...Array<Workload>]
  readonly dialect: Dialect
  /** The schema of the request. Keeps unknown fields for the provider. */
  readonly request: Schema.Codec<RequestBody, unknown>
  /** What ingress checks, if a provider may get the request unchanged and judges the rest. Default: `request`. */
  readonly outline?: Schema.Codec<RequestBody, unknown>
  /** The same of a form. Default: `form`. */
  readonly formOutline?: Schema.Codec<RequestBody, FormData>
  /** Decodes bodies that have one field and lack another: some clients send another operation's requests. */
  readonly alternative?: {
    readonly has: string
    readonly lacks: string
    readonly request: Schema.Codec<RequestBody, unknown>
    readonly outline: Schema.Codec<RequestBody, unknown>
  }
  /** Decodes the same request from `multipart/form-data`. */
  readonly form?: Schema.Codec<RequestBody, FormData> & { readonly to: Schema.Top }
  readonly response: Schema.Top
  /** Media types of answers that are neither JSON nor events. */
  readonly responseTypes?: ReadonlyArray<string>
  /** Whether the client asked for server-sent events. */
  readonly streams: (request: RequestBody) => boolean
  /** Whether the request's field `background` asks for an answer that outlives the connection. */
  readonly hasBackground?: boolean
  /** Headers of which a request must have at least one, with a date as the API version. They travel with the job. */
  readonly versionHeaders?: ReadonlyArray<string>
  /** Further request headers that travel with the job, in lower case. */
  readonly headers?: ReadonlyArray<string>
  /** What the worker does with records of the key's owner, if anything. */
  readonly records?: "reads" | "writes"
  /** Whether the operation costs nothing and uses no tokens, such as the counting of tokens. */
  readonly isFree?: boolean
  /** The model of a request that names none. Without it, such a request is refused. */
  readonly defaultModel?: string
  /** Whether only providers serve the operation, no built-in engine. */
  readonly needsProvider?: boolean
  /** `answer` (the default): the job's answer is the response. `task`: the response is a durable task that can be polled. */
  readonly kind?: "answer" | "task"
  /** The schema of the task as clients see it; only for `task`. */
  readonly task?: Schema.Top
  /** What the built-in engine accepts of a request. Only for `task`, because a job rejects the request in its answer. */
  readonly local?: Schema.Codec<unknown, unknown>
}
