/** Adds the gateway's headers to one request's answer: provider, attempts and time in queues. */
import type { Refusal } from "../health/TargetPace.ts"
import type { Head, Sink } from "../transport/Sink.ts"
import type { Candidate } from "./Route.ts"

export class AnnotatedSink implements Sink {
  readonly #sink: Sink
  /** The provider that was called last. */
  provider = ""
  /** Number of calls made. */
  attempts = 0
  /** Whether the last call has failed and may be billed. */
  mayBeBilled = false
  /** Time that the request has waited in queues, in milliseconds. */
  queuedMs: number
  /** What a provider's latest 429 says about the request, by target. */
  #refusals: Map<string, Refusal | undefined> | undefined
  #onStart: (() => void) | undefined
  #onFirstChunk: (() => void) | undefined

  constructor(sink: Sink, queuedMs: number) {
    this.#sink = sink
    this.queuedMs = queuedMs
  }

  /**
   * Runs when the answer starts. A method, not a property: V8 allocates a closure assigned to a property in its old space,
   * which also keeps everything that the closure captures.
   */
  onStart(run: (() => void) | undefined): void {
    this.#onStart = run
  }

  /** Runs with the first bytes of a stream of events. */
  onFirstChunk(run: (() => void) | undefined): void {
    this.#onFirstChunk = run
  }

  /** A target has answered 429. */
  refused({ key }: Candidate, refusal: Refusal | undefined): void {
    this.#refusals ??= new Map()
    this.#refusals.set(key, refusal)
  }

  /** Whether a target has refused this request with 429 while it accepted others, so that it would refuse it again. */
  isRefusedAlone({ key }: Candidate): boolean {
    return this.#refusals?.get(key)?.isAlone === true
  }

  get hasStarted(): boolean {
    return this.#sink.hasStarted
  }

  start(head: Head): void {
    this.#onStart?.()
    if (!head.contentType.startsWith("text/event-stream")) this.#onFirstChunk = undefined
    this.#sink.start({
      ...head,
      headers: {
        ...head.headers,
        "x-gateway-provider": encodeURI(this.provider),
        "x-gateway-attempts": String(this.attempts),
        "x-gateway-queue-ms": String(Math.round(this.queuedMs))
      }
    })
  }

  write(bytes: Uint8Array): boolean {
    this.#onFirstChunk?.()
    this.#onFirstChunk = undefined
    return this.#sink.write(bytes)
  }

  onDrain(resume: () => void): void {
    this.#sink.onDrain(resume)
  }
}
