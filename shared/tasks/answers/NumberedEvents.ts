/**
 * Numbers the server-sent events of an answer, so that a client can ask for those after the last one that it has. An event's number
 * is its own `sequence_number`, or else one more than the number of the event before it. The first is 0.
 */
import { Option, Schema } from "effect"
import { dataOf, SseFrames } from "../../bounds/SseFrames.ts"

export interface NumberedEvent {
  readonly bytes: Uint8Array
  /** `undefined` for a comment. */
  readonly number: number | undefined
}

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ sequence_number: Schema.Natural }))
)

/** Larger events are not parsed: they are final events, whose numbers follow from the events before them. */
const maxReadBytes = 64 * 1024

export class NumberedEvents {
  readonly #frames = new SseFrames()
  /** The number of the next event unless it has its own. */
  #next: number

  constructor(first = 0) {
    this.#next = first
  }

  /** The number of the next event. */
  get next(): number {
    return this.#next
  }

  /** The size of the incomplete event so far, in bytes. */
  get restBytes(): number {
    return this.#frames.restBytes
  }

  /** The bytes of the incomplete event: the last one, if the answer ends without a blank line. */
  get rest(): Uint8Array {
    return this.#frames.rest
  }

  /** Adds bytes, and returns the events that are now complete. */
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
