/** `keys create | edit | disable | enable | replace | list | revoke | erase | ensure`: API keys, stored in the NATS at `NATS_URL`. */
import { Config, Console, DateTime, Effect, Layer, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { userInfo } from "node:os"
import { ControlNats, Nats } from "../../shared/nats/Nats.ts"
import { buckets } from "../../shared/nats/Storage.ts"
import { startupMessage } from "../../shared/process/StartupMessage.ts"
import { type ApiKey, isReplaced, secretPattern, secretShape } from "../../shared/keys/ApiKey.ts"
import { defaults, type KeyChanges } from "../../shared/keys/KeySettings.ts"
import { KeyAudit } from "../../shared/keys/KeyAudit.ts"
import { type CreatedKey, KeyStore } from "../../shared/keys/KeyStore.ts"
import { TeamStore } from "../../shared/teams/TeamStore.ts"
import { InvalidInput } from "./FlagDecoder.ts"
import * as Owners from "../../shared/records/Owners.ts"
import * as Endpoints from "../../shared/webhooks/Endpoints.ts"
import * as KeyFlags from "./KeyFlags.ts"

const store = TeamStore.layer.pipe(
  Layer.provideMerge(Layer.merge(KeyStore.layer, KeyAudit.layer)),
  Layer.provideMerge(ControlNats.layer)
)

/** The defaults of a team for new keys. An error names the flag. */
const keyDefaultsOf = (team: KeyChanges["team"]) =>
  Effect.flatMap(TeamStore, ({ keyDefaults }) => keyDefaults(team)).pipe(
    Effect.catchTag("TeamMisplaced", ({ mistake }) => new InvalidInput({ message: `--team: ${mistake}` }))
  )

/** The actor that the audit log names. */
const actor = Effect.sync(() => `${userInfo().username} at the command line`)

const name = Flag.String("name").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("Name, such as the team or application that uses the key")
)

const id = Argument.String("id").pipe(Argument.withDescription("Key id, as `keys list` prints it"))

const stateOf = ({ disabled, expiresAt }: ApiKey): string => {
  if (disabled) return "disabled"
  return expiresAt !== null && DateTime.isPastUnsafe(expiresAt) ? "expired" : "active"
}

const describe = (key: ApiKey): string =>
  [
    key.id,
    key.owner === key.id ? [] : `owner ${key.owner}`,
    stateOf(key),
    `created ${DateTime.formatIso(key.createdAt)}`,
    key.editedAt === null ? [] : `edited ${DateTime.formatIso(key.editedAt)}`,
    key.expiresAt === null ? "never expires" : `expires ${DateTime.formatIso(key.expiresAt)}`,
    key.requestsPerMinute === null ? [] : `${key.requestsPerMinute} requests/min`,
    key.tokensPerMinute === null ? [] : `${key.tokensPerMinute} tokens/min`,
    key.concurrentRequests === null ? [] : `${key.concurrentRequests} at once`,
    key.batchConcurrency === defaults.batchConcurrency ? [] : `${key.batchConcurrency} batch lines at once`,
    key.monthlyBudgetUsd === null ? [] : `${key.monthlyBudgetUsd} USD/month`,
    key.team === null ? [] : key.team,
    key.allowedModels.includes("*") ? [] : `models ${key.allowedModels.join(",")}`,
    `${key.priorityClass} x${key.weight}`,
    key.name
  ].flat().join("  ")

const show = Effect.fnUntraced(function*({ key, secret }: CreatedKey) {
  yield* (yield* KeyAudit).created(yield* actor, key)
  yield* Console.error(describe(key))
  yield* Console.error("The key's secret, shown only this once:")
  yield* Console.log(Redacted.value(secret))
})

const create = Command.make(
  "create",
  { name, ...KeyFlags.flags },
  Effect.fn(function*({ name, ...given }) {
    const settings = yield* KeyFlags.decodeSettings({ ...given, name: Option.some(name) })
    const keyDefaults = yield* keyDefaultsOf(settings.team)
    yield* show(yield* (yield* KeyStore).create({ ...keyDefaults, ...settings, name }))
  }, Effect.provide(store))
).pipe(Command.withDescription("Create a key and print its secret"))

const change = (id: string, changes: KeyChanges) =>
  Effect.gen(function*() {
    yield* keyDefaultsOf(changes.team)
    const key = yield* (yield* KeyStore).edit(id, changes)
    yield* (yield* KeyAudit).edited(yield* actor, key, changes)
    yield* Console.log(describe(key))
  }).pipe(Effect.provide(store))

const edit = Command.make(
  "edit",
  { id, name: name.pipe(Flag.optional), ...KeyFlags.flags },
  Effect.fn(function*({ id, ...given }) {
    const changes = yield* KeyFlags.decodeSettings(given)
    if (Object.keys(changes).length > 0) return yield* change(id, changes)
    return yield* new InvalidInput({ message: "No changes given: pass at least one setting, for example --weight 3" })
  })
).pipe(Command.withDescription("Change the given settings of a key, with immediate effect"))

const disable = Command.make("disable", { id }, ({ id }) => change(id, { disabled: true })).pipe(
  Command.withDescription("Reject requests with a key until it is enabled again")
)

const enable = Command.make("enable", { id }, ({ id }) => change(id, { disabled: false })).pipe(
  Command.withDescription("Accept a disabled key again")
)

const replace = Command.make(
  "replace",
  { id },
  Effect.fn(function*({ id }) {
    yield* show(yield* (yield* KeyStore).replace(id))
    yield* Console.error(`${id} stays valid: revoke it when its clients use the new key.`)
  }, Effect.provide(store))
).pipe(Command.withDescription("Create a key with the settings and the stored data of another"))

const list = Command.make(
  "list",
  {},
  Effect.fn(function*() {
    const all = yield* (yield* KeyStore).list
    if (all.length === 0) yield* Console.error("No keys. Create one with `npm run keys -- create --name <name>`.")
    for (const key of all) yield* Console.log(describe(key))
  }, Effect.provide(store))
).pipe(Command.withDescription("List the keys without their secrets"))

/** Removes the webhook of a revoked key unless the key was replaced. The key stays revoked if the removal fails. */
const removeWebhook = Effect.fnUntraced(
  function*(key: ApiKey) {
    if (isReplaced(key, yield* (yield* KeyStore).list)) return
    yield* Effect.provide(Endpoints.remove(key.owner), Nats.layer)
  },
  (removal, { owner }) =>
    Effect.catch(removal, (error) => {
      const command = `nats kv del ${buckets.webhookEndpoints.name} -- ${Endpoints.placeOf(owner)}`
      return Console.error(
        "The key's webhook, if it has one, was not removed and still gets the events of running tasks. " +
          `${startupMessage(error)}. To remove it, run \`${command}\` with the seed admin.nk.`
      )
    })
)

const revoke = Command.make(
  "revoke",
  { id },
  Effect.fn(function*({ id }) {
    const key = yield* (yield* KeyStore).revoke(id)
    yield* (yield* KeyAudit).revoked(yield* actor, key)
    yield* Console.log(`revoked ${key.id} (${key.name})`)
    yield* removeWebhook(key)
  }, Effect.provide(store))
).pipe(Command.withDescription("Delete a key permanently, with immediate effect"))

const erase = Command.make(
  "erase",
  { owner: Argument.String("owner").pipe(Argument.withDescription("Key id, or the owner that `keys list` prints")) },
  Effect.fn(function*({ owner }) {
    if (!(yield* Owners.remove(owner))) return yield* new InvalidInput({ message: `Nothing is stored for ${owner}` })
    yield* (yield* KeyAudit).erased(yield* actor, owner)
    yield* Console.log(`erased what was stored for ${owner}`)
  }, Effect.provide(store))
).pipe(Command.withDescription("Make everything stored for a key and its replacements unreadable, permanently"))

/** Reads the secret from the environment: every user of the machine can read command lines. */
const ensure = Command.make(
  "ensure",
  { name },
  Effect.fn(function*({ name }) {
    const secret = yield* Config.Redacted("GATEWAY_BOOTSTRAP_KEY").pipe(Config.withDefault(Redacted.make("")))
    if (!secretPattern.test(Redacted.value(secret))) {
      return yield* new InvalidInput({ message: `GATEWAY_BOOTSTRAP_KEY must be ${secretShape}` })
    }
    if ((yield* (yield* KeyStore).ensure({ name, secret })) !== "revoked") return
    yield* Console.log("This key was revoked and is not created again: set GATEWAY_BOOTSTRAP_KEY to another")
  }, Effect.provide(store))
).pipe(Command.withDescription("Create the key in GATEWAY_BOOTSTRAP_KEY unless it exists or was revoked"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("Manage API keys"),
  Command.withSubcommands([create, edit, disable, enable, replace, list, revoke, erase, ensure])
)
