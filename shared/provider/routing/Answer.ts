/** One request's answer on its way to the client: it says in its headers how it came about. */
import type { Head, Sink } from "../transport/Sink.ts"

export class Answer implements Sink {
  readonly #sink: Sink
  /** Of the provider that was last called. */
  provider = ""
  /** How many calls were made. */
  attempts = 0
  /** How long nobody worked on the request, in milliseconds. */
  queuedMs: number
  #onStart: (() => void) | undefined
  #onFirstChunk: (() => void) | undefined

  constructor(sink: Sink, queuedMs: number) {
    this.#sink = sink
    this.queuedMs = queuedMs
  }

  /**
   * Runs when the answer begins. Given to a method: V8 makes a function that is written where a property is assigned among
   * its old objects, and what it knows of lives as long as they do.
   */
  onStart(run: (() => void) | undefined): void {
    this.#onStart = run
  }

  /** Runs with its first bytes, where it is a stream of events. */
  onFirstChunk(run: (() => void) | undefined): void {
    this.#onFirstChunk = run
  }

  get started(): boolean {
    return this.#sink.started
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
