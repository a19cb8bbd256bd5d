/** The latest completed requests, from their usage events. */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { openJournal } from "../../../shared/nats/Journal.ts"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { events as kept } from "../../../shared/nats/Storage.ts"
import { UsageEvent } from "../../../shared/usage/UsageEvent.ts"

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(UsageEvent))

export class RequestLog extends Context.Service<RequestLog, {
  /** At most `count` requests, newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<UsageEvent>, JetStreamFailed>
}>()("services/console/RequestLog") {
  static readonly layer = Layer.effect(
    RequestLog,
    Effect.gen(function*() {
      const events = yield* openJournal(kept.usage).pipe(Effect.retry(whileJetStreamFails))
      return RequestLog.of({
        latest: (count) =>
          Effect.map(events.latest(count), (texts) => texts.flatMap((text) => Option.toArray(decode(text))))
      })
    })
  )
}
