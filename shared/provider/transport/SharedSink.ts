/** Shares one client's sink between several concurrent writers. All paused writers resume when the sink drains. */
import type { Head, Sink } from "./Sink.ts"

export class SharedSink implements Sink {
  readonly #sink: Sink
  #paused: Array<() => void> = []

  constructor(sink: Sink) {
    this.#sink = sink
  }

  get hasStarted(): boolean {
    return this.#sink.hasStarted
  }

  start(head: Head): void {
    this.#sink.start(head)
  }

  write(bytes: Uint8Array): boolean {
    return this.#sink.write(bytes)
  }

  onDrain(resume: () => void): void {
    this.#paused.push(resume)
    if (this.#paused.length > 1) return
    this.#sink.onDrain(() => {
      const paused = this.#paused
      this.#paused = []
      for (const resume of paused) resume()
    })
  }
}
