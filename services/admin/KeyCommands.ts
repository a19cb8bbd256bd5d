/** `keys create | list | revoke | ensure`: API keys, in the NATS that `NATS_URL` names. */
import { Config, Console, DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Nats } from "../../shared/bus/Nats.ts"
import type { ApiKey } from "../../shared/keys/ApiKey.ts"
import { secretPattern } from "../../shared/keys/ApiKey.ts"
import { KeyStore } from "../../shared/keys/KeyStore.ts"
import { failPlainly } from "./Plainly.ts"

const store = KeyStore.layer.pipe(Layer.provide(Nats.layer))

const name = Flag.String("name").pipe(
  Flag.withDescription("What the key is for"),
  Flag.withSchema(Schema.NonEmptyString)
)

const describe = (key: ApiKey): string => {
  const state = key.disabled ? "disabled" : "active"
  const expires = key.expiresAt === null ? "never expires" : `expires ${DateTime.formatIso(key.expiresAt)}`
  return `${key.id}  ${state}  created ${DateTime.formatIso(key.createdAt)}  ${expires}  ${key.name}`
}

const create = Command.make(
  "create",
  {
    name,
    expires: Flag.String("expires").pipe(
      Flag.withDescription("When it ends to be valid: a date such as 2027-01-31, or 2027-01-31T12:00:00Z"),
      Flag.withSchema(Schema.DateTimeUtcFromString),
      Flag.optional
    )
  },
  Effect.fn(
    function*({ expires, name }) {
      const keys = yield* KeyStore
      const { key, secret } = yield* keys.create({ name, expiresAt: Option.getOrNull(expires) })
      yield* Console.error(describe(key))
      yield* Console.error("The key itself, shown this once:")
      yield* Console.log(Redacted.value(secret))
    },
    Effect.provide(store),
    failPlainly
  )
).pipe(Command.withDescription("Make a key and print it"))

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
  { id: Argument.String("id").pipe(Argument.withDescription("The key's id, as in the list")) },
  Effect.fn(
    function*({ id }) {
      const key = yield* (yield* KeyStore).revoke(id)
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
      const secret = yield* Config.Redacted("GATEWAY_BOOTSTRAP_KEY")
      if (!secretPattern.test(Redacted.value(secret))) {
        return yield* new MalformedKey()
      }
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
  Command.withSubcommands([create, list, revoke, ensure])
)
