/**
 * Relays the frames of a job's answer as an HTTP response.
 *
 * JSON is held until it is complete, up to 1 MiB, so that an error can still set the status and a lost worker can be
 * replaced. Other answers, such as events or sound, start with their first bytes, or for a client that asks for events after a
 * while without any: load balancers cut silent connections. Bytes are relayed unchanged, at the client's pace.
 */
import { Cause, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { AnswerHead } from "../../../shared/bus/protocol/Frame.ts"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobHandle, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import { type JobError, ProviderFailed } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import type { Settle } from "../request/Admission.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"

/** At most the window: a worker that has filled the window waits until ingress has taken some bytes. */
const holdBackBytes = 1024 * 1024

/**
 * After this much silence, in milliseconds, a stream gets a comment, which clients skip. So does a request for a stream that a
 * worker has had for that long; from then on an error is an event of the stream.
 */
const keepAliveMs = 15_000
const keepAlive = Buffer.from(": keep-alive\n\n")

const eventStream = "text/event-stream"

const newline = 0x0a
const carriageReturn = 0x0d

/** Whether these bytes end with a complete event, so that ingress may add its own events. */
const endsEvent = (bytes: Uint8Array): boolean => {
  const before = bytes.at(-2) === carriageReturn ? bytes.at(-3) : bytes.at(-2)
  return bytes.at(-1) === newline && before === newline
}

export interface RelayOptions {
  readonly jobs: JobClient["Service"]
  readonly request: JobRequest
  readonly dialect: Dialect
  readonly record: RequestRecord
  readonly settle: Settle | undefined
  /** Whether the client asks for a stream of events. */
  readonly streams: boolean
}

/** Submits a job and returns the response when its status is known. Interruption cancels the job. */
export const relay = (options: RelayOptions): Relayed =>
  Effect.callback<HttpServerResponse.HttpServerResponse, JobError>((resume) => {
    const answer = new RelayedAnswer(options, resume)
    return Effect.sync(() => answer.cancel())
  })

type Relayed = Effect.Effect<HttpServerResponse.HttpServerResponse, JobError>

type Pulled = Effect.Effect<readonly [Uint8Array, ...Array<Uint8Array>], JobError | Cause.Done<void>>

class RelayedAnswer implements AnswerListener {
  readonly #options: RelayOptions
  readonly #resume: (result: Relayed) => void
  readonly #job: JobHandle
  #head: AnswerHead | undefined
  #chunks: Array<Uint8Array> = []
  #bytes = 0
  /** The response has started, and further bytes go into its body. */
  #isStreaming = false
  #isFlushed = false
  /** The response has started before the answer, with a comment. */
  #isEarly = false
  /** That comment was sent. */
  #isOpen = false
  #earlyStart: NodeJS.Timeout | undefined
  #hasEnded = false
  /** The bytes so far end in the middle of an event. */
  #isMidEvent = false
  #error: JobError | undefined
  /** Bytes that the client has been given but has not confirmed by its next pull. */
  #unconfirmed = 0
  #waiting: ((pulled: Pulled) => void) | undefined

  constructor(options: RelayOptions, resume: (result: Relayed) => void) {
    this.#options = options
    this.#resume = resume
    options.record.markSubmitted()
    this.#job = options.jobs.submit(options.request, this)
  }

  cancel(): void {
    clearTimeout(this.#earlyStart)
    this.#job.cancel()
    this.#options.settle?.(undefined)
  }

  onClaim(): void {
    const { record, request: { pool, workload } } = this.#options
    record.markClaimed(workload, pool)
    if (this.#options.streams) this.#earlyStart ??= setTimeout(() => this.#startEarly(), keepAliveMs)
  }

  onStart(head: AnswerHead): void {
    clearTimeout(this.#earlyStart)
    this.#head = head
    if (!this.#isEarly || head.contentType.startsWith(eventStream)) return
    this.#job.cancel()
    const provider = head.headers["x-gateway-provider"] ?? ""
    this.onError(ProviderFailed.malformed(decodeURI(provider), "the client asked for a stream"))
  }

  onChunk(bytes: Uint8Array, isLast: boolean): void {
    // copied if no client is waiting: the original would keep NATS's whole read buffer in memory
    this.#chunks.push(this.#isStreaming && this.#waiting === undefined ? Buffer.from(bytes) : bytes)
    this.#bytes += bytes.length
    this.#isMidEvent = !endsEvent(bytes)
    // `onEnd` follows and delivers the rest
    if (isLast) return
    if (this.#isStreaming) return this.#deliver()
    if (!this.#isJson || this.#bytes >= holdBackBytes) this.#startStreaming()
  }

  onRestart(): void {
    this.#head = undefined
    this.#chunks = []
    this.#bytes = 0
  }

  onEnd(usage: Usage | undefined): void {
    clearTimeout(this.#earlyStart)
    this.#hasEnded = true
    this.#options.settle?.(usage)
    if (this.#isStreaming) return this.#deliver()
    this.#options.record.markAnswering()
    const body = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#bytes)
    this.#resume(Effect.succeed(HttpServerResponse.uint8Array(body ?? new Uint8Array(0), this.#responseOptions)))
  }

  onError(error: JobError): void {
    clearTimeout(this.#earlyStart)
    if (!this.#isStreaming) return this.#resume(Effect.fail(error))
    this.#error = error
    this.#options.settle?.(undefined)
    const { dialect, record } = this.#options
    record.markBroken(error._tag)
    if (this.#isEventStream) {
      const end = this.#isMidEvent ? "\n\n" : ""
      this.#chunks.push(Buffer.from(`${end}${ErrorEnvelope.toFrame(dialect, error, record.id)}`))
      this.#hasEnded = true
    }
    this.#deliver()
  }

  get #isJson(): boolean {
    return this.#head?.contentType.startsWith("application/json") !== false
  }

  get #isEventStream(): boolean {
    return this.#isEarly || this.#head?.contentType.startsWith(eventStream) === true
  }

  get #responseOptions() {
    const usual = this.#isEarly ? eventStream : "application/json"
    const { contentType = usual, headers = {}, status = 200 } = this.#head ?? {}
    return {
      status,
      contentType,
      headers: contentType.startsWith(eventStream)
        ? { ...headers, "cache-control": "no-cache", "x-accel-buffering": "no" }
        : headers
    }
  }

  #startEarly(): void {
    this.#isEarly = true
    this.#startStreaming()
  }

  #startStreaming(): void {
    this.#isStreaming = true
    const body = Stream.fromPull(Effect.succeed(Effect.suspend(() => this.#pull()))).pipe(
      Stream.ensuring(Effect.sync(() => this.cancel()))
    )
    this.#resume(Effect.succeed(HttpServerResponse.stream(body, this.#responseOptions)))
  }

  /** The next bytes for the client. Each pull confirms that the client has taken the previous bytes. */
  #pull(): Pulled {
    if (this.#unconfirmed > 0) {
      this.#job.taken(this.#unconfirmed)
      this.#unconfirmed = 0
    }
    const ready = this.#take()
    if (ready !== undefined) return ready
    if (this.#isEarly && !this.#isOpen) {
      this.#isOpen = true
      return Effect.succeed([keepAlive])
    }
    return Effect.callback<readonly [Uint8Array, ...Array<Uint8Array>], JobError | Cause.Done<void>>((resume) => {
      const stop = () => {
        clearTimeout(timer)
        this.#waiting = undefined
      }
      const deliver = (pulled: Pulled) => {
        stop()
        resume(pulled)
      }
      // a timer, because `Effect.timeout` would start two more fibers at every pull
      const timer = this.#isEventStream
        ? setTimeout(() => this.#isMidEvent ? undefined : deliver(Effect.succeed([keepAlive])), keepAliveMs)
        : undefined
      this.#waiting = deliver
      return Effect.sync(stop)
    })
  }

  #take(): Pulled | undefined {
    const [first, ...rest] = this.#chunks
    if (first !== undefined) {
      if (!this.#isFlushed) {
        this.#isFlushed = true
        this.#job.flushed()
        this.#options.record.markAnswering()
      }
      this.#unconfirmed = this.#bytes
      this.#chunks = []
      this.#bytes = 0
      return Effect.succeed([first, ...rest])
    }
    if (this.#error !== undefined && !this.#hasEnded) return Effect.fail(this.#error)
    return this.#hasEnded ? Cause.done() : undefined
  }

  #deliver(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    const ready = this.#take()
    if (ready !== undefined) waiting(ready)
  }
}
