/**
 * The log of requests: one line of JSON for each when its answer has ended, in the format of the other log lines. Lines are
 * written in batches, because there may be thousands per second.
 */
import { Clock, Config, Console, Context, DateTime, Effect, Layer, LogLevel, References, Schema } from "effect"
import { between } from "../../../shared/contract/Fields.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/** A batch is written when it has this many bytes or is this old. */
const batchBytes = 64 * 1024
const batchMs = 100

const shareFromText = Schema.FiniteFromString.pipe(Schema.decodeTo(between(0, 1)))

export class RequestLog extends Context.Service<RequestLog, {
  readonly write: (record: RequestRecord) => void
}>()("services/ingress/record/RequestLog") {
  /**
   * Reads `GATEWAY_REQUEST_LOG`: the share of requests that are logged, 0 to 1 (default 1). Failed requests are always
   * logged, except with 0. Nothing is logged if `LOG_LEVEL` is above `info`.
   */
  static readonly layer = Layer.effect(
    RequestLog,
    Effect.gen(function*() {
      const share = yield* Config.schema(shareFromText, "GATEWAY_REQUEST_LOG").pipe(Config.withDefault(1))
      const clock = yield* Clock.Clock
      const output = yield* Console.Console
      const isSilent = LogLevel.isGreaterThan(yield* References.MinimumLogLevel, "Info")
      const format = timestamps()
      let batch = ""
      let timer: NodeJS.Timeout | undefined
      const flush = () => {
        clearTimeout(timer)
        timer = undefined
        // the console ends the batch's last line
        if (batch !== "") output.log(batch.slice(0, -1))
        batch = ""
      }
      yield* Effect.addFinalizer(() => Effect.sync(flush))
      return RequestLog.of({
        write: (record) => {
          if (isSilent || share === 0 || (record.error === undefined && Math.random() >= share)) return
          const timestamp = format(clock.currentTimeMillisUnsafe())
          batch += JSON.stringify({ message: "request", level: "INFO", timestamp, annotations: record.toLog() }) + "\n"
          if (batch.length >= batchBytes) flush()
          else timer ??= setTimeout(flush, batchMs)
        }
      })
    })
  )
}

/** Formats timestamps as ISO 8601 in UTC. The part up to the second is formatted once per second. */
const timestamps = () => {
  let second = Number.NaN
  let prefix = ""
  return (millis: number): string => {
    const within = millis % 1_000
    if (millis - within !== second) {
      second = millis - within
      prefix = DateTime.formatIso(DateTime.makeUnsafe(second)).slice(0, -"000Z".length)
    }
    return `${prefix}${String(within).padStart(3, "0")}Z`
  }
}
