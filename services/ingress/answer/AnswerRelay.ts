/**
 * Turns the frames of a job's answer into an HTTP response.
 *
 * JSON is held back until it is whole, up to a megabyte, so that an error can still be told by its status and a lost worker
 * be replaced. Anything else, events or sound, begins with its first bytes. From then on bytes are passed untouched, at the
 * pace at which the client takes them.
 */
import { Cause, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { AnswerHead } from "../../../shared/bus/protocol/Frame.ts"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobHandle, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import type { Over } from "../request/Admission.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"

/** Not more than the window: a worker that has filled it writes no more until something was taken. */
const holdBackBytes = 1024 * 1024

/** A comment that every client skips, sent when a stream has been silent this long (milliseconds). */
const keepAliveMs = 15_000
const keepAlive = Buffer.from(": keep-alive\n\n")

const eventStream = "text/event-stream"

const newline = 0x0a
const carriageReturn = 0x0d

/** Whether events of our own can come after these bytes: those before them are whole. */
const endsEvent = (bytes: Uint8Array): boolean => {
  const before = bytes.at(-2) === carriageReturn ? bytes.at(-3) : bytes.at(-2)
  return bytes.at(-1) === newline && before === newline
}

export interface RelayOptions {
  readonly jobs: JobClient["Service"]
  readonly request: JobRequest
  readonly dialect: Dialect
  readonly record: RequestRecord
  /** Told when the job is over, where that is of interest. */
  readonly over: Over | undefined
}

/** Submits a job and returns the response as soon as its status is certain. Interruption cancels the job. */
export const relay = (options: RelayOptions): Effect.Effect<HttpServerResponse.HttpServerResponse, JobError> =>
  Effect.callback<HttpServerResponse.HttpServerResponse, JobError>((resume) => {
    const answer = new Answer(options, resume)
    return Effect.sync(() => answer.cancel())
  })

type Pulled = Effect.Effect<readonly [Uint8Array, ...Array<Uint8Array>], JobError | Cause.Done<void>>

class Answer implements AnswerListener {
  readonly #options: RelayOptions
  readonly #resume: (
    result: Effect.Effect<HttpServerResponse.HttpServerResponse, JobError>
  ) => void
  readonly #job: JobHandle
  #head: AnswerHead | undefined
  #chunks: Array<Uint8Array> = []
  #bytes = 0
  /** The response was given; what comes now goes to whoever pulls. */
  #passing = false
  #flushed = false
  #ended = false
  /** What has come ends in the middle of an event. */
  #isCut = false
  #error: JobError | undefined
  #lent = 0
  #waiting: ((pulled: Pulled) => void) | undefined

  constructor(
    options: RelayOptions,
    resume: (result: Effect.Effect<HttpServerResponse.HttpServerResponse, JobError>) => void
  ) {
    this.#options = options
    this.#resume = resume
    options.record.submitted()
    this.#job = options.jobs.submit(options.request, this)
  }

  cancel(): void {
    this.#job.cancel()
    this.#options.over?.(undefined)
  }

  onClaim(): void {
    const { record, request: { pool, workload } } = this.#options
    record.claimed(workload, pool)
  }

  onStart(head: AnswerHead): void {
    this.#head = head
  }

  onChunk(bytes: Uint8Array, isLast: boolean): void {
    // kept for a client that is not there to take it: as it is, it would keep all that was read from NATS with it
    this.#chunks.push(this.#passing && this.#waiting === undefined ? Buffer.from(bytes) : bytes)
    this.#bytes += bytes.length
    this.#isCut = !endsEvent(bytes)
    // the end comes next, and delivers what is left
    if (isLast) return
    if (this.#passing) return this.#deliver()
    if (!this.#isJson || this.#bytes >= holdBackBytes) this.#pass()
  }

  onRestart(): void {
    this.#head = undefined
    this.#chunks = []
    this.#bytes = 0
  }

  onEnd(usage: Usage | undefined): void {
    this.#ended = true
    this.#options.over?.(usage)
    if (this.#passing) return this.#deliver()
    this.#options.record.answering()
    const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#bytes)
    this.#resume(Effect.succeed(HttpServerResponse.uint8Array(body ?? new Uint8Array(0), this.#responseOptions)))
  }

  onError(error: JobError): void {
    if (!this.#passing) return this.#resume(Effect.fail(error))
    this.#error = error
    this.#options.over?.(undefined)
    const { dialect, record } = this.#options
    record.broken(error._tag)
    if (this.#isEventStream) {
      const end = this.#isCut ? "\n\n" : ""
      this.#chunks.push(Buffer.from(`${end}${ErrorEnvelope.toFrame(dialect, error, record.id)}`))
      this.#ended = true
    }
    this.#deliver()
  }

  get #isJson(): boolean {
    return this.#head?.contentType.startsWith("application/json") !== false
  }

  get #isEventStream(): boolean {
    return this.#head?.contentType.startsWith(eventStream) === true
  }

  get #responseOptions() {
    const { contentType = "application/json", headers = {}, status = 200 } = this.#head ?? {}
    return {
      status,
      contentType,
      headers: contentType.startsWith(eventStream)
        ? { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" }
        : headers
    }
  }

  #pass(): void {
    this.#passing = true
    this.#options.record.answering()
    const body = Stream.fromPull(Effect.succeed(Effect.suspend(() => this.#pull()))).pipe(
      Stream.ensuring(Effect.sync(() => this.cancel()))
    )
    this.#resume(Effect.succeed(HttpServerResponse.stream(body, this.#responseOptions)))
  }

  /** The next bytes for the client. That it asks for more says that it has taken what it was given before. */
  #pull(): Pulled {
    if (!this.#flushed) {
      this.#flushed = true
      this.#job.flushed()
    }
    if (this.#lent > 0) {
      this.#job.taken(this.#lent)
      this.#lent = 0
    }
    const ready = this.#take()
    if (ready !== undefined) return ready
    return Effect.callback<readonly [Uint8Array, ...Array<Uint8Array>], JobError | Cause.Done<void>>((resume) => {
      const stop = () => {
        clearTimeout(timer)
        this.#waiting = undefined
      }
      const deliver = (pulled: Pulled) => {
        stop()
        resume(pulled)
      }
      // a timer, not `Effect.timeout`, which races two more fibers at every pull
      const timer = this.#isEventStream
        ? setTimeout(() => this.#isCut ? undefined : deliver(Effect.succeed([keepAlive])), keepAliveMs)
        : undefined
      this.#waiting = deliver
      return Effect.sync(stop)
    })
  }

  #take(): Pulled | undefined {
    const [first, ...rest] = this.#chunks
    if (first !== undefined) {
      this.#lent = this.#bytes
      this.#chunks = []
      this.#bytes = 0
      return Effect.succeed([first, ...rest])
    }
    if (this.#error !== undefined && !this.#ended) return Effect.fail(this.#error)
    return this.#ended ? Cause.done() : undefined
  }

  #deliver(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    const ready = this.#take()
    if (ready !== undefined) waiting(ready)
  }
}
