/**
 * Numbers the server-sent events of an answer, so that a client can ask for those after the last one that it has. The number is the
 * event's own `sequence_number`; an event without one follows the event before it, from 0.
 */
import { Option, Schema } from "effect"
import { dataOf, SseFrames } from "../../bounds/SseFrames.ts"

export interface NumberedEvent {
  readonly bytes: Uint8Array
  /** `undefined`: a comment. */
  readonly number: number | undefined
}

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ sequence_number: Schema.Natural }))
)

/** Larger events are not read: they are the last ones, and follow those before them. */
const maxReadBytes = 64 * 1024

export class NumberedEvents {
  readonly #frames = new SseFrames()
  /** The number of the next event, unless it has its own. */
  #next: number

  constructor(first = 0) {
    this.#next = first
  }

  /** The number of the next event. */
  get next(): number {
    return this.#next
  }

  /** How many bytes of an incomplete event there are. */
  get restBytes(): number {
    return this.#frames.restBytes
  }

  /** The end of an answer without a blank line. */
  get rest(): Uint8Array {
    return this.#frames.rest
  }

  /** The events that are complete with these bytes. */
  push(bytes: Uint8Array): ReadonlyArray<NumberedEvent> {
    return this.#frames.push(bytes).map((frame) => {
      const data = dataOf(frame)
      if (data === undefined) return { bytes: frame, number: undefined }
      const own = data.length > maxReadBytes ? Option.none() : decode(Buffer.from(data).toString())
      const number = Option.isSome(own) ? own.value.sequence_number : this.#next
      this.#next = number + 1
      return { bytes: frame, number }
    })
  }
}
