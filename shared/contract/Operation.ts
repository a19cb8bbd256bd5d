/**
 * What an operation is: one value from which the routes, the job subject, the decoder, the OpenAPI document, the span
 * and metric names and the error envelope are derived.
 */
import { Schema } from "effect"

/** The worker services, one per kind of model. Each has its own stream of jobs and is scaled on its own. */
export const workloads = ["chat", "images", "video", "embeddings", "rerank", "speech"] as const
export type Workload = typeof workloads[number]

/** A part of a workload with a queue and workers of its own. A token of a NATS subject. */
export const PoolName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9-]{1,32}$/u, { expected: "lower case letters, digits and -, at most 32 of them" })
)

/** Whose conventions a client of the operation expects: the shape of errors and of keep-alive frames. */
export type Dialect = "openai" | "anthropic" | "gemini" | "cohere"

/** What ingress itself needs to know of a decoded request. */
export interface RequestBody {
  /** Absent where the path names the model. */
  readonly model?: string | null | undefined
  readonly stream?: boolean | null | undefined
}

/** A request as a client may send it, and an answer that it may get. */
export interface Example {
  readonly summary: string
  /** Stands in the path where that names the model, and in the body otherwise. */
  readonly model: string
  /** All else of the body. */
  readonly body: Readonly<Record<string, unknown>>
  /** Sent as `multipart/form-data`. */
  readonly isForm?: boolean
  /** What JSON holds, or the text of server-sent events. Absent where the answer is bytes. */
  readonly answer?: object | string
}

export interface Operation {
  /** Its name in spans, metrics, jobs and as OpenAPI's `operationId`. */
  readonly name: string
  readonly summary: string
  /** What its summary has no room for, in CommonMark. */
  readonly description: string
  /** At least one for each form of the request and of the answer, by their names in the OpenAPI document. */
  readonly examples: Readonly<Record<string, Example>>
  /**
   * Where it is served. `{model}` stands for the model's name, which may hold slashes and then wins over the body's.
   * The first path is the documented one, the others are what official clients use.
   */
  readonly paths: readonly [`/${string}`, ...Array<`/${string}`>]
  /** Which models can serve it: those of one of these workloads. */
  readonly workloads: readonly [Workload, ...Array<Workload>]
  readonly dialect: Dialect
  /** A decoder that keeps unknown fields: they are the provider's business. */
  readonly request: Schema.Codec<RequestBody, unknown>
  /** Decodes the same request from `multipart/form-data`, where clients send that. */
  readonly form?: Schema.Codec<RequestBody, FormData> & { readonly to: Schema.Top }
  readonly response: Schema.Top
  /** The media types that the answer can have where it is not JSON. */
  readonly responseTypes?: ReadonlyArray<string>
  /** Whether the client of this decoded request asked for server-sent events. */
  readonly streams: (request: RequestBody) => boolean
  /**
   * Headers of which one must be there, with a date as its value: the version of the API that the client speaks. They go
   * with the job.
   */
  readonly versionHeaders?: ReadonlyArray<string>
  /** Further headers of the request that go with the job, by their names in lower case. */
  readonly headers?: ReadonlyArray<string>
  /** `answer` (the default): the job's answer is the response. `task`: a durable task is made and can be asked for. */
  readonly kind?: "answer" | "task"
  /** What a task looks like to whoever asks for it; there for `task` only. */
  readonly task?: Schema.Top
}
