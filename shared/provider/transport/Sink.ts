/** The interface to which providers write their answers: the head once, then bytes, with back-pressure from the client. */
import { Effect, Stream } from "effect"

export interface Head {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Sink {
  /** Whether `start` was called. From then on no other provider can be tried. */
  readonly hasStarted: boolean
  readonly start: (head: Head) => void
  /** `false` asks the writer to pause until `onDrain` runs. */
  readonly write: (bytes: Uint8Array) => boolean
  /** Calls `resume` once, when more may be written. */
  readonly onDrain: (resume: () => void) => void
}

const waitForDrain = (sink: Sink): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    sink.onDrain(() => resume(Effect.void))
  })

/** Writes a whole stream, as fast as the sink accepts it. */
export const writeAll = <E, R>(sink: Sink, stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<void, E, R> =>
  Stream.runForEach(stream, (bytes) => sink.write(bytes) ? Effect.void : waitForDrain(sink))
