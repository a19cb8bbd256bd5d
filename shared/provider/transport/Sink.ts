/** Where a provider's answer goes: the head once, then bytes, at the pace at which the client takes them. */
import { Effect, Stream } from "effect"

/** The head of an HTTP answer. */
export interface Head {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Sink {
  /** Whether the head was given. From then on no other provider can be tried. */
  readonly started: boolean
  readonly start: (head: Head) => void
  /** `false` asks the writer to pause until `onDrain` runs. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Runs `resume` once, as soon as more may be written. */
  readonly onDrain: (resume: () => void) => void
}

const drained = (sink: Sink): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    sink.onDrain(() => resume(Effect.void))
  })

/** Writes a stream to its end, pulling only as fast as the sink takes it. */
export const writeAll = <E, R>(sink: Sink, stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<void, E, R> =>
  Stream.runForEach(stream, (bytes) => sink.write(bytes) ? Effect.void : drained(sink))
