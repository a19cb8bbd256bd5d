/**
 * The log of requests: one line of JSON for each when its answer has ended, in the form of the other lines, but gathered
 * and written together, for there may be thousands in a second.
 */
import { Clock, Config, Context, DateTime, Effect, Layer, LogLevel, References, Schema } from "effect"
import type { RequestRecord } from "./RequestRecord.ts"

/** Lines are written when this many bytes have gathered, or after so many milliseconds. */
const gatherBytes = 64 * 1024
const gatherMs = 100

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

export class RequestLog extends Context.Service<RequestLog, {
  readonly write: (record: RequestRecord) => void
}>()("services/ingress/RequestLog") {
  /**
   * Reads `GATEWAY_REQUEST_LOG`: the share of requests that get a line, 0 to 1 (default 1). Those that failed get theirs
   * in any case, unless it is 0. Nothing is written above the level `info` (`LOG_LEVEL`).
   */
  static readonly layer = Layer.effect(
    RequestLog,
    Effect.gen(function*() {
      const share = yield* Config.schema(Schema.FiniteFromString.pipe(Schema.decodeTo(Share)), "GATEWAY_REQUEST_LOG")
        .pipe(
          Config.withDefault(1)
        )
      const clock = yield* Clock.Clock
      const isSilent = LogLevel.isGreaterThan(yield* References.MinimumLogLevel, "Info")
      const format = timestamps()
      let gathered = ""
      let timer: NodeJS.Timeout | undefined
      const flush = () => {
        clearTimeout(timer)
        timer = undefined
        if (gathered !== "") process.stdout.write(gathered)
        gathered = ""
      }
      yield* Effect.addFinalizer(() => Effect.sync(flush))
      return RequestLog.of({
        write: (record) => {
          if (isSilent || share === 0 || (record.error === undefined && Math.random() >= share)) return
          const timestamp = format(clock.currentTimeMillisUnsafe())
          gathered += `${
            JSON.stringify({ message: "request", level: "INFO", timestamp, annotations: record.toLog() })
          }\n`
          if (gathered.length >= gatherBytes) flush()
          else timer ??= setTimeout(flush, gatherMs)
        }
      })
    })
  )
}

/** Formats as ISO 8601 in UTC; a second's beginning once for all that falls into it. */
const timestamps = () => {
  let second = Number.NaN
  let begun = ""
  return (millis: number): string => {
    const within = millis % 1_000
    if (millis - within !== second) {
      second = millis - within
      begun = DateTime.formatIso(DateTime.makeUnsafe(second)).slice(0, -"000Z".length)
    }
    return `${begun}${String(within).padStart(3, "0")}Z`
  }
}
