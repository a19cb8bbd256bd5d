/** Who changed which API key, how and when. Never secrets: a record says no more than a listing of the keys. */
import { Clock, Context, DateTime, Effect, Layer, Option, Schedule, Schema } from "effect"
import type { EventStream } from "../bus/EventStream.ts"
import { type JetStreamFailed, patiently } from "../bus/JobStreams.ts"
import { openJournal } from "../bus/Journal.ts"

export const KeyChange = Schema.Struct({
  at: Schema.DateTimeUtcFromString,
  /** Who, as they named themselves. */
  by: Schema.String,
  action: Schema.Literals(["created", "edited", "disabled", "enabled", "revoked"]),
  /** The key's id and its name at that time. */
  key: Schema.String,
  name: Schema.String,
  /** What was set, where settings were. */
  settings: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})
export type KeyChange = typeof KeyChange.Type

const encode = Schema.encodeSync(Schema.fromJsonString(KeyChange))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(KeyChange))

const changes: EventStream = {
  name: "KEY_CHANGES",
  subjects: "keychanges.>",
  maxAgeMs: 400 * 24 * 3_600_000,
  maxBytes: 64 * 1024 ** 2,
  duplicatesMs: 2 * 60_000
}

/** How long a record is tried to be written, in milliseconds. */
const writeWithinMs = 5_000

export class KeyAudit extends Context.Service<KeyAudit, {
  /** Writes down what was done. What cannot be written goes to the process's log: the change itself stands. */
  readonly record: (change: Omit<KeyChange, "at">) => Effect.Effect<void>
  /** The newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<KeyChange>, JetStreamFailed>
}>()("shared/keys/KeyAudit") {
  static readonly layer = Layer.effect(
    KeyAudit,
    Effect.gen(function*() {
      const journal = yield* openJournal(changes).pipe(
        Effect.retry({ while: (error) => error._tag === "JetStreamFailed", schedule: patiently })
      )
      const persistently = patiently.pipe(Schedule.upTo({ duration: writeWithinMs }))
      return KeyAudit.of({
        record: Effect.fn("KeyAudit.record")(function*(change) {
          const at = DateTime.makeUnsafe(yield* Clock.currentTimeMillis)
          yield* journal.append(`keychanges.${change.key}`, encode({ at, ...change })).pipe(
            Effect.retry(persistently),
            Effect.catch((error) => Effect.logError("a change of a key was not written down", { ...change, error }))
          )
        }),
        latest: (count) =>
          Effect.map(journal.latest(count), (texts) => texts.flatMap((text) => Option.toArray(decode(text))))
      })
    })
  )
}
