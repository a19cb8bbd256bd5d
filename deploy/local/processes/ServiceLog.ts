/** The log file of a service, and the last lines of its current run. */
import { Effect, Fiber, FileSystem, Option, Schema, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"

/** Maximum size in bytes. A larger file is rotated when the service starts; one older file is kept. */
const largest = 16 * 1024 * 1024

/** The bytes read from the end of a file for its last lines. */
const tailSize = 8 * 1024

export interface ServiceLog {
  readonly file: string
  /** Writes the output of the run to the file until it ends or the scope closes. */
  readonly follow: (output: Stream.Stream<Uint8Array, PlatformError>) => Effect.Effect<void>
  /** Waits until the output of an ended run is written, for at most a second: a grandchild may hold it open. */
  readonly flushed: Effect.Effect<void>
  /** The last lines of the run, in readable form. */
  readonly tail: (lines: number) => Effect.Effect<ReadonlyArray<string>>
}

const decodeEntry = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ level: Schema.String, message: Schema.Unknown }))
)

/** Turns JSON log lines into `ERROR chat ends: …`; leaves other lines unchanged. */
const plain = (line: string): string =>
  Option.match(decodeEntry(line), {
    onNone: () => line,
    onSome: ({ level, message }) => {
      const parts = Array.isArray(message) ? message : [message]
      return [level, ...parts.map((part) => typeof part === "string" ? part : JSON.stringify(part))].join(" ")
    }
  })

/** Opens the log for one run of a service. Pending output is written before the scope closes. */
export const openLog = Effect.fn("ServiceLog.open")(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  const size = fs.stat(file).pipe(Effect.map((info) => Number(info.size)), Effect.orElseSucceed(() => 0))
  if ((yield* size) > largest) yield* fs.rename(file, `${file}.old`)
  const begin = yield* size
  let writing: Fiber.Fiber<void> | undefined

  const flushed = Effect.suspend(() => writing === undefined ? Effect.void : Fiber.join(writing)).pipe(
    Effect.timeoutOption("1 second"),
    Effect.asVoid
  )
  const log: ServiceLog = {
    file,
    follow: (output) =>
      Stream.run(output, fs.sink(file, { flag: "a" })).pipe(
        // drain the output even if the disk is full, otherwise the service would block
        Effect.catch(() => Effect.ignore(Stream.runDrain(output))),
        Effect.forkDetach,
        Effect.map((fiber) => void (writing = fiber))
      ),
    flushed,
    tail: Effect.fnUntraced(function*(lines) {
      const offset = Math.max(begin, (yield* size) - tailSize)
      const text = fs.stream(file, { offset }).pipe(Stream.decodeText(), Stream.mkString)
      const all = (yield* text.pipe(Effect.orElseSucceed(() => ""))).split("\n").filter((line) => line.trim() !== "")
      return all.slice(-lines).map(plain)
    })
  }
  yield* Effect.addFinalizer(() =>
    flushed.pipe(Effect.andThen(Effect.suspend(() => writing === undefined ? Effect.void : Fiber.interrupt(writing))))
  )
  return log
})
