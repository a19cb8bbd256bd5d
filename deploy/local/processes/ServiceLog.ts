/** The log file of a service: everything it writes, and what its present run wrote last. */
import { Effect, Fiber, FileSystem, Option, Schema, Stream } from "effect"
import type { PlatformError } from "effect/PlatformError"

/** A file larger than this, in bytes, is set aside when the service starts; one older file is kept. */
const largest = 16 * 1024 * 1024

/** As much of a file's end as is read for the last lines, in bytes. */
const tailSize = 8 * 1024

export interface ServiceLog {
  readonly file: string
  /** Writes the output of the present run to the file, until it ends or the scope does. */
  readonly follow: (output: Stream.Stream<Uint8Array, PlatformError>) => Effect.Effect<void>
  /** Waits until what an ended run wrote is in the file. Bounded: a grandchild may hold the output open. */
  readonly flushed: Effect.Effect<void>
  /** The last lines of the present run, at most as many as asked for, as somebody reads them. */
  readonly tail: (lines: number) => Effect.Effect<ReadonlyArray<string>>
}

const decodeEntry = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ level: Schema.String, message: Schema.Unknown }))
)

/** `ERROR chat ends: …` of what services write as JSON; anything else as it is. */
const plain = (line: string): string =>
  Option.match(decodeEntry(line), {
    onNone: () => line,
    onSome: ({ level, message }) => {
      const parts = Array.isArray(message) ? message : [message]
      return [level, ...parts.map((part) => typeof part === "string" ? part : JSON.stringify(part))].join(" ")
    }
  })

/** Opens the log for one run of a service. What is still being written is finished before the scope is left. */
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
        // a full disk must not stop the service: what it writes is read all the same
        Effect.catch(() => Effect.ignore(Stream.runDrain(output))),
        Effect.forkDetach,
        Effect.map((fiber) => {
          writing = fiber
        })
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
