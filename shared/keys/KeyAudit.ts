/** The audit log of API keys and teams: who changed what, and when. */
import { Context, DateTime, Effect, Layer, Option, Schedule, Schema } from "effect"
import { backOff, type JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openJournal } from "../nats/Journal.ts"
import { events } from "../nats/Storage.ts"
import type { ApiKey } from "./ApiKey.ts"
import { KeyChange } from "./KeyChange.ts"
import { KeyChanges, KeySettings } from "./KeySettings.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(KeyChange))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(KeyChange))
const settingsAsJson = Schema.encodeSync(KeySettings)
const changesAsJson = Schema.encodeSync(KeyChanges)

/** How long a failed write is retried, in milliseconds. */
const writeWithinMs = 5_000

/** An edit that only disables or enables a key is recorded as such. */
const actionOf = (changes: KeyChanges) => {
  if (changes.disabled === undefined || Object.keys(changes).length > 1) return "edited"
  return changes.disabled ? "disabled" : "enabled"
}

/** A key with its team, or a team. */
export type Changed = Pick<ApiKey, "id" | "name"> & Partial<Pick<ApiKey, "team">>

/** Writes and reads the audit log. A record that cannot be stored is logged instead; the change itself stays. */
export class KeyAudit extends Context.Service<KeyAudit, {
  readonly created: (by: string, key: ApiKey) => Effect.Effect<void>
  readonly edited: (by: string, key: ApiKey, changes: KeyChanges) => Effect.Effect<void>
  readonly revoked: (by: string, key: ApiKey) => Effect.Effect<void>
  /**
   * The webhook of a key or a team was changed. `webhook`: what is new about it; `null` if it was removed. Of a URL only the origin,
   * because the rest may be secret.
   */
  readonly webhookChanged: (by: string, of: Changed, webhook: string | null) => Effect.Effect<void>
  /** A task of the key was cancelled or deleted. */
  readonly taskChanged: (
    by: string,
    key: Pick<ApiKey, "id" | "name" | "team">,
    action: "cancelled" | "deleted",
    task: string
  ) => Effect.Effect<void>
  /** A team was created, edited or deleted. */
  readonly teamChanged: (
    by: string,
    team: Changed,
    action: "created" | "edited" | "deleted",
    settings?: KeyChange["settings"]
  ) => Effect.Effect<void>
  /** Everything stored for an owner was deleted. */
  readonly erased: (by: string, owner: string) => Effect.Effect<void>
  /** The latest `count` changes, newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<KeyChange>, JetStreamFailed>
}>()("shared/keys/KeyAudit") {
  static readonly layer = Layer.effect(
    KeyAudit,
    Effect.gen(function*() {
      const journal = yield* openJournal(events.keyChanges).pipe(Effect.retry(whileJetStreamFails))
      const persistently = backOff.pipe(Schedule.upTo({ duration: writeWithinMs }))

      const record = Effect.fn("KeyAudit.record")(function*(
        by: string,
        { id: key, name, team }: Changed,
        action: KeyChange["action"],
        settings?: KeyChange["settings"]
      ) {
        const change: KeyChange = {
          at: yield* DateTime.now,
          by,
          action,
          key,
          name,
          ...(team === undefined ? {} : { team }),
          ...(settings === undefined ? {} : { settings })
        }
        yield* journal.append(`keychanges.${key}`, encode(change)).pipe(
          Effect.retry(persistently),
          Effect.catch((error) => Effect.logError("a change of a key was not recorded", { ...change, error }))
        )
      })

      return KeyAudit.of({
        created: (by, key) => record(by, key, "created", { ...settingsAsJson(key) }),
        edited: (by, key, changes) => {
          const action = actionOf(changes)
          return record(by, key, action, action === "edited" ? { ...changesAsJson(changes) } : undefined)
        },
        revoked: (by, key) => record(by, key, "revoked"),
        webhookChanged: (by, of, webhook) => record(by, of, "edited", { webhook }),
        taskChanged: (by, key, action, task) => record(by, key, action, { task }),
        teamChanged: record,
        erased: (by, owner) => record(by, { id: owner, name: "" }, "erased"),
        latest: (count) =>
          Effect.map(journal.latest(count), (texts) => texts.flatMap((text) => Option.toArray(decode(text))))
      })
    })
  )
}
