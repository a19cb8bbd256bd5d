/**
 * Pulls the bodies of large requests from ingress, part by part. The worker asks for the next part only after it has received the
 * previous one, so that neither side nor the NATS server buffers more than one part. It asks again for a part that is late, since
 * ingress's connection may have broken.
 */
import type { Msg } from "@nats-io/nats-core"
import { Effect } from "effect"
import { AnswerLost } from "../../contract/JobError.ts"
import { frameBytes } from "../protocol/Timings.ts"
import { header, parseControl } from "../protocol/Subjects.ts"

/** The size of one part, in bytes. */
const partBytes = 4 * frameBytes

/** How long the whole transfer may take, in milliseconds: 32 MiB at a little over 1 MiB/s. */
const withinMs = 30_000

/** After how much silence the worker asks again, in milliseconds; doubles with each repetition. */
const firstRepeatMs = 1_000

interface Transfer {
  readonly bytes: Uint8Array
  received: number
  asked: number
  /** When to ask again, and after how much silence. */
  repeatAt: number
  repeatMs: number
  readonly ask: (offset: number, length: number) => void
  readonly finish: (result: Effect.Effect<Uint8Array, AnswerLost>) => void
}

export class BodyPull {
  readonly #transfers = new Map<string, Transfer>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Pulls a body of `size` bytes. `key` is from `attemptKey`; `ask` requests `length` bytes from `offset` on. Fails with
   * `AnswerLost` if the transfer takes longer than `withinMs`.
   */
  fetch(
    key: string,
    size: number,
    ask: (offset: number, length: number) => void
  ): Effect.Effect<Uint8Array, AnswerLost> {
    return Effect.callback<Uint8Array, AnswerLost>((finish) => {
      const transfer: Transfer = {
        bytes: Buffer.allocUnsafe(size),
        received: 0,
        asked: 0,
        repeatAt: 0,
        repeatMs: 0,
        ask,
        finish
      }
      this.#transfers.set(key, transfer)
      this.#progress(transfer)
      askNext(transfer)
      return Effect.sync(() => this.#transfers.delete(key))
    }).pipe(
      Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.fail(new AnswerLost()) }),
      Effect.ensuring(Effect.sync(() => this.#transfers.delete(key)))
    )
  }

  receive(message: Msg): void {
    const transfer = this.#transfers.get(parseControl(message.subject).key)
    if (transfer === undefined) return
    const { data } = message
    const offset = Number(message.headers?.get(header.offset))
    // either earlier bytes are lost and will be requested again, or these bytes answer a repeated request and have arrived already
    if (offset !== transfer.received || offset + data.length > transfer.asked) return
    this.#progress(transfer)
    transfer.bytes.set(data, offset)
    transfer.received += data.length
    if (transfer.received === transfer.bytes.length) transfer.finish(Effect.succeed(transfer.bytes))
    else if (transfer.received === transfer.asked) askNext(transfer)
  }

  /** Runs periodically: requests late parts again. */
  check(): void {
    const now = this.#now()
    for (const transfer of this.#transfers.values()) {
      const { asked, received, repeatAt } = transfer
      if (now < repeatAt) continue
      transfer.repeatMs *= 2
      transfer.repeatAt = now + transfer.repeatMs
      transfer.ask(received, asked - received)
    }
  }

  #progress(transfer: Transfer): void {
    transfer.repeatMs = firstRepeatMs
    transfer.repeatAt = this.#now() + firstRepeatMs
  }
}

const askNext = (transfer: Transfer): void => {
  const length = Math.min(partBytes, transfer.bytes.length - transfer.received)
  transfer.asked = transfer.received + length
  transfer.ask(transfer.received, length)
}
