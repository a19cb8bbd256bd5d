/** The latest completed requests, from their usage events. */
import { Context, Effect, Layer, Option } from "effect"
import { openJournal } from "../../../shared/nats/Journal.ts"
import { type JetStreamFailed, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { events as kept } from "../../../shared/nats/Storage.ts"
import { decodeUsageEvent, knowledgeOf, type UsageEvent } from "../../../shared/usage/UsageEvent.ts"

export class RequestLog extends Context.Service<RequestLog, {
  /** At most `count` requests, newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<UsageEvent>, JetStreamFailed>
}>()("services/console/handlers/RequestLog") {
  static readonly layer = Layer.effect(
    RequestLog,
    Effect.gen(function*() {
      const events = yield* openJournal(kept.usage).pipe(Effect.retry(whileJetStreamFails))
      return RequestLog.of({
        latest: (count) =>
          Effect.map(events.latest(count), (texts) => {
            const found = texts.flatMap((text) => Option.toArray(decodeUsageEvent(text)))
            const counted = new Map<string, UsageEvent>()
            for (const event of found) {
              const newer = counted.get(event.id)
              // among events with the same id, those that know most count, and of these the oldest, as in `RecentEvents.ts`
              if (newer === undefined || knowledgeOf(event) >= knowledgeOf(newer)) counted.set(event.id, event)
            }
            return [...counted.values()]
          })
      })
    })
  )
}
