/**
 * Relays the frames of a job's answer as an HTTP response.
 *
 * JSON is held until it is complete, up to 1 MiB, so that an error can still set the status and a lost worker can be
 * replaced. Other answers, such as events or sound, start with their first bytes. The response to a client that asks for events
 * starts without any after a while, because load balancers cut silent connections. Bytes are relayed unchanged, at the client's
 * pace.
 */
import type { Writable } from "node:stream"
import type { AnswerHead } from "../../../shared/bus/protocol/Frame.ts"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobHandle, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import { type JobError, ProviderFailed } from "../../../shared/contract/JobError.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import type { Settle } from "../request/Admission.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { Exchange, ResponseHead } from "../exchange/Exchange.ts"

/** Bytes of JSON to hold, at most the window: a worker that has filled the window waits until ingress has taken some bytes. */
const holdBackBytes = 1024 * 1024

/**
 * After this much silence, in milliseconds, a stream gets a comment, which clients skip. If a worker has had a request for a stream
 * for that long, the comment starts the response, and a later error is an event of the stream.
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
  readonly exchange: Pick<
    Exchange,
    "fail" | "send" | "open" | "break" | "guard" | "whenClosed" | "operation" | "record"
  >
  readonly settle: Settle | undefined
  /** Called when the job begins to wait for a provider. The returned function is called when it no longer waits. */
  readonly onWait: (provider: string) => () => void
  /** Whether the client asks for a stream of events. */
  readonly streams: boolean
}

/** Submits a job and answers with its frames. The job is cancelled if the client leaves. */
export const relay = (options: RelayOptions): void => {
  const answer = new RelayedAnswer(options)
  options.exchange.whenClosed(() => answer.close())
}

/** The part of the options that the answer keeps. It has no body, whose memory nothing counts once the job has ended. */
type Kept =
  & Pick<RelayOptions, "exchange" | "settle" | "streams" | "onWait">
  & Pick<JobRequest, "workload" | "pool" | "model">

class RelayedAnswer implements AnswerListener {
  readonly #options: Kept
  readonly #job: JobHandle
  #head: AnswerHead | undefined
  /** Bytes that have not been written to the response. */
  #chunks: Array<Uint8Array> = []
  #bytes = 0
  /** Whether the answer is relayed as it arrives. */
  #isStreaming = false
  /** Whether a write is scheduled. It writes all chunks that arrived together. */
  #isScheduled = false
  #isFlushed = false
  /** Whether the response has started before the answer, with a comment. */
  #isEarly = false
  /** The body of a response that has started. */
  #out: Writable | undefined
  /** Bytes that were written to the response and that the client has not taken. */
  #untaken = 0
  /** Fires after silence, before or during the answer. */
  #silence: NodeJS.Timeout | undefined
  #hasEnded = false
  /** Runs when the job no longer waits for a provider. */
  #endWait: (() => void) | undefined
  #isClosed = false
  /** Whether the bytes so far end in the middle of an event. */
  #isMidEvent = false
  /** Whether the answer has failed and its format has no event for the error. */
  #isBroken = false

  constructor({ exchange, jobs, onWait, request, settle, streams }: RelayOptions) {
    const { model, pool, workload } = request
    this.#options = { exchange, settle, streams, onWait, workload, pool, model }
    exchange.record.markSubmitted()
    this.#job = jobs.submit(request, this)
  }

  /** The last byte is written, or the client has left. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#silence)
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#endWait?.()
    this.#job.cancel()
    this.#options.settle?.(undefined)
  }

  onClaim(): void {
    const { exchange: { record }, pool, streams, workload } = this.#options
    record.markClaimed(workload, pool)
    if (streams) this.#silence ??= setTimeout(() => this.#breakSilence(), keepAliveMs)
  }

  onWait(provider: string | undefined): void {
    this.#endWait?.()
    this.#endWait = provider === undefined ? undefined : this.#options.onWait(provider)
  }

  onStart(head: AnswerHead): void {
    this.#head = head
    if (head.contentType.startsWith(eventStream)) return
    clearTimeout(this.#silence)
    this.#silence = undefined
    if (!this.#isEarly) return
    this.#job.cancel()
    const provider = head.headers["x-gateway-provider"] ?? ""
    this.onError(ProviderFailed.malformed(decodeURI(provider), "the client asked for a stream"))
  }

  onChunk(bytes: Uint8Array, isLast: boolean): void {
    // copied if the client has to catch up: the original would keep NATS's whole read buffer in memory
    this.#chunks.push(this.#untaken > 0 ? Buffer.from(bytes) : bytes)
    this.#bytes += bytes.length
    this.#isMidEvent = !endsEvent(bytes)
    // `onEnd` follows and writes the rest
    if (isLast) return
    if (this.#isStreaming || !this.#isJson || this.#bytes >= holdBackBytes) this.#stream()
  }

  onRestart(): void {
    this.#head = undefined
    this.#chunks = []
    this.#bytes = 0
    this.#isMidEvent = false
    this.#isStreaming = this.#isEarly
  }

  onEnd(usage: Usage | undefined): void {
    this.#end(usage)
    if (this.#isStreaming) return this.#stream()
    const { exchange } = this.#options
    exchange.record.markAnswering()
    exchange.guard(() => exchange.send(this.#responseHead, this.#takeChunks()))
  }

  onError(error: JobError): void {
    const { exchange, model, settle } = this.#options
    if (!this.#isStreaming) {
      settle?.("nothing")
      this.#end(undefined)
      return exchange.guard(() => exchange.fail(error))
    }
    this.#end(undefined)
    exchange.record.markBroken(error._tag)
    if (this.#isEventStream) {
      const end = this.#isMidEvent ? "\n\n" : ""
      const frame = ErrorEnvelope.toFrame(exchange.operation.dialect, error, { requestId: exchange.record.id, model })
      const bytes = Buffer.from(`${end}${frame}`)
      this.#chunks.push(bytes)
      this.#bytes += bytes.length
    } else this.#isBroken = true
    this.#stream()
  }

  get #isJson(): boolean {
    return this.#head?.contentType.startsWith("application/json") !== false
  }

  get #isEventStream(): boolean {
    return this.#isEarly || this.#head?.contentType.startsWith(eventStream) === true
  }

  get #responseHead(): ResponseHead {
    const usual = this.#isEarly ? eventStream : "application/json"
    const { contentType = usual, headers = {}, status = 200 } = this.#head ?? {}
    return {
      status,
      headers: contentType.startsWith(eventStream)
        ? { ...headers, "content-type": contentType, "cache-control": "no-cache", "x-accel-buffering": "no" }
        : { ...headers, "content-type": contentType }
    }
  }

  #end(usage: Usage | undefined): void {
    clearTimeout(this.#silence)
    this.#hasEnded = true
    this.#endWait?.()
    this.#options.settle?.(usage)
  }

  /** Schedules a write, after the other chunks that arrive in this callback. */
  #stream(): void {
    this.#isStreaming = true
    if (this.#isScheduled || this.#untaken > 0) return
    this.#isScheduled = true
    process.nextTick(() => {
      this.#isScheduled = false
      this.#options.exchange.guard(() => this.#give())
    })
  }

  /** The body of the response, which starts with its first bytes. */
  get #body(): Writable {
    if (this.#out !== undefined) return this.#out
    this.#out = this.#options.exchange.open(this.#responseHead)
    this.#out.on("drain", () => this.#caughtUp())
    return this.#out
  }

  #give(): void {
    if (this.#isClosed) return
    const bytes = this.#bytes
    if (bytes > 0) {
      if (!this.#isFlushed) {
        this.#isFlushed = true
        this.#job.flushed()
        this.#options.exchange.record.markAnswering()
      }
      const isTaken = this.#body.write(this.#takeChunks())
      if (isTaken) this.#job.taken(bytes)
      else this.#untaken = bytes
    }
    if (!this.#hasEnded) return this.#isEventStream ? this.#awaitSilence() : undefined
    if (this.#isBroken) this.#options.exchange.break()
    else this.#body.end()
  }

  #takeChunks(): Uint8Array {
    const [first] = this.#chunks
    const bytes = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks, this.#bytes)
    this.#chunks = []
    this.#bytes = 0
    return bytes
  }

  #caughtUp(): void {
    const bytes = this.#untaken
    this.#untaken = 0
    this.#job.taken(bytes)
    if (this.#bytes > 0 || this.#hasEnded) this.#stream()
  }

  #awaitSilence(): void {
    if (this.#silence === undefined) this.#silence = setTimeout(() => this.#breakSilence(), keepAliveMs)
    else this.#silence.refresh()
  }

  #breakSilence(): void {
    if (!this.#isStreaming) {
      this.#isEarly = true
      this.#isStreaming = true
    }
    if (!this.#isMidEvent && this.#untaken === 0) this.#options.exchange.guard(() => void this.#body.write(keepAlive))
    this.#awaitSilence()
  }
}
