/** `keys create | edit | disable | enable | list | revoke | ensure`: API keys, in the NATS that `NATS_URL` names. */
import { Config, Console, DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { userInfo } from "node:os"
import { ControlNats } from "../../shared/nats/Nats.ts"
import type { ApiKey } from "../../shared/keys/ApiKey.ts"
import { secretPattern } from "../../shared/keys/ApiKey.ts"
import type { KeyChanges } from "../../shared/keys/KeySettings.ts"
import { KeyAudit } from "../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../shared/keys/KeyStore.ts"
import * as KeyFlags from "./KeyFlags.ts"
import { failPlainly } from "./Plainly.ts"

const store = Layer.merge(KeyStore.layer, KeyAudit.layer).pipe(Layer.provide(ControlNats.layer))

/** Who it is, for the log of changes. */
const by = Effect.sync(() => `${userInfo().username} at the command line`)

const name = Flag.String("name").pipe(Flag.withDescription("What the key is for"))

const id = Argument.String("id").pipe(Argument.withDescription("The key's id, as in the list"))

const describe = (key: ApiKey): string => {
  const {
    allowedModels,
    concurrentRequests,
    createdAt,
    disabled,
    editedAt,
    expiresAt,
    monthlyBudgetUsd,
    priorityClass,
    requestsPerMinute,
    tokensPerMinute,
    weight
  } = key
  return [
    key.id,
    disabled ? "disabled" : "active",
    `created ${DateTime.formatIso(createdAt)}`,
    editedAt === null ? [] : `edited ${DateTime.formatIso(editedAt)}`,
    expiresAt === null ? "never expires" : `expires ${DateTime.formatIso(expiresAt)}`,
    requestsPerMinute === null ? [] : `${requestsPerMinute} requests/min`,
    tokensPerMinute === null ? [] : `${tokensPerMinute} tokens/min`,
    concurrentRequests === null ? [] : `${concurrentRequests} at once`,
    monthlyBudgetUsd === null ? [] : `${monthlyBudgetUsd} USD/month`,
    allowedModels.includes("*") ? [] : `models ${allowedModels.join(",")}`,
    `${priorityClass} x${weight}`,
    key.name
  ].flat().join("  ")
}

const create = Command.make(
  "create",
  { name, ...KeyFlags.flags },
  Effect.fn(
    function*({ name, ...given }) {
      const settings = yield* KeyFlags.settingsOf({ ...given, name: Option.some(name) })
      const { key, secret } = yield* (yield* KeyStore).create({ ...settings, name })
      yield* (yield* KeyAudit).created(yield* by, key)
      yield* Console.error(describe(key))
      yield* Console.error("The key itself, shown this once:")
      yield* Console.log(Redacted.value(secret))
    },
    Effect.provide(store),
    failPlainly
  )
).pipe(Command.withDescription("Make a key and print it"))

const change = (id: string, changes: KeyChanges) =>
  Effect.gen(function*() {
    const key = yield* (yield* KeyStore).edit(id, changes)
    yield* (yield* KeyAudit).edited(yield* by, key, changes)
    yield* Console.log(describe(key))
  }).pipe(Effect.provide(store))

/** Somebody has forgotten the flags, and would take the key for changed. */
class NothingGiven extends Schema.TaggedError<NothingGiven>()("NothingGiven", {}) {
  override get message() {
    return "Nothing is to be changed: say what, as in --weight 3"
  }
}

const edit = Command.make(
  "edit",
  { id, name: name.pipe(Flag.optional), ...KeyFlags.flags },
  Effect.fn(
    function*({ id, ...given }) {
      const changes = yield* KeyFlags.settingsOf(given)
      if (Object.keys(changes).length === 0) return yield* new NothingGiven()
      yield* change(id, changes)
    },
    failPlainly
  )
).pipe(Command.withDescription("Change what is given of a key, at once; the rest stays"))

const disable = Command.make("disable", { id }, ({ id }) => failPlainly(change(id, { disabled: true }))).pipe(
  Command.withDescription("Refuse a key until it is enabled again")
)

const enable = Command.make("enable", { id }, ({ id }) => failPlainly(change(id, { disabled: false }))).pipe(
  Command.withDescription("Accept a key again that was disabled")
)

const list = Command.make(
  "list",
  {},
  Effect.fn(
    function*() {
      const all = yield* (yield* KeyStore).list
      if (all.length === 0) yield* Console.error("There are no keys")
      for (const key of all) yield* Console.log(describe(key))
    },
    Effect.provide(store),
    failPlainly
  )
).pipe(Command.withDescription("List the keys, never their secrets"))

const revoke = Command.make(
  "revoke",
  { id },
  Effect.fn(
    function*({ id }) {
      const key = yield* (yield* KeyStore).revoke(id)
      yield* (yield* KeyAudit).revoked(yield* by, key)
      yield* Console.log(`revoked ${key.id} (${key.name})`)
    },
    Effect.provide(store),
    failPlainly
  )
).pipe(Command.withDescription("End a key's validity for good, at once"))

/** The secret comes by the environment: a command line can be read by every user of the machine. */
const ensure = Command.make(
  "ensure",
  { name },
  Effect.fn(
    function*({ name }) {
      const secret = yield* Config.Redacted("GATEWAY_BOOTSTRAP_KEY").pipe(Config.withDefault(Redacted.make("")))
      if (!secretPattern.test(Redacted.value(secret))) return yield* new MalformedKey()
      yield* (yield* KeyStore).ensure({ name, secret })
    },
    Effect.provide(store),
    failPlainly
  )
).pipe(Command.withDescription("Make sure that the key in GATEWAY_BOOTSTRAP_KEY exists"))

class MalformedKey extends Schema.TaggedError<MalformedKey>()("MalformedKey", {}) {
  override get message() {
    return "GATEWAY_BOOTSTRAP_KEY must be sk-gw- and 32 letters or digits"
  }
}

export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([create, edit, disable, enable, list, revoke, ensure])
)
