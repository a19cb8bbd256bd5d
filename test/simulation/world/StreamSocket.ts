/** A connection of the simulated network as a Node stream, as HTTP clients need it. */
import type { EventEmitter } from "node:events"
import { Duplex } from "node:stream"

/** The client's end of a connection. */
export interface Wire extends EventEmitter {
  readonly write: (bytes: Uint8Array) => unknown
  readonly destroy: () => unknown
}

export class StreamSocket extends Duplex {
  connecting = true
  readonly #wire: Wire

  constructor(dial: (onConnect: () => void) => Wire) {
    super({ allowHalfOpen: false })
    this.#wire = dial(() => {
      this.connecting = false
      this.emit("connect")
    })
    this.#wire.on("data", (bytes: Buffer) => void this.push(bytes))
    this.#wire.on("end", () => void this.push(null))
    this.#wire.on("error", (error: Error) => void this.destroy(error))
    this.#wire.on("close", () => void this.destroy())
  }

  override _read(): void {
    // nothing to do: bytes are pushed when they arrive
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#wire.write(bytes)
    done()
  }

  override _final(done: () => void): void {
    this.#wire.destroy()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#wire.destroy()
    done(error)
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}
