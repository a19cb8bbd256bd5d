/**
 * A NATS from the version with a single account: provisioning moves keys, their log, spending, counters and sessions to the
 * control account once, and usage is counted once across the move.
 */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { ConfigProvider, Context, Effect, Layer, Logger, Option, Schedule } from "effect"
import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { promisify } from "node:util"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { type ControlNats, layerBoth, type Nats } from "../../../shared/nats/Nats.ts"
import { type Account, buckets } from "../../../shared/nats/Storage.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { inherited } from "../../fixture/general/Inherited.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { manyEvents, rowsAt, store, total } from "../../fixture/nats/UsageEvents.ts"

/** Two accounts, as in `accounts.conf`, with one user each. */
const config = `
accounts {
  GATEWAY { jetstream: enabled, users: [{ user: data, password: word }] }
  GATEWAY_CONTROL { jetstream: enabled, users: [{ user: control, password: word }] }
}`

type Version = "former" | "present"

/** The earlier version keeps in the jobs' account what is now in the control account. */
const environmentOf = (server: NatsServer, version: Version) => ({
  NATS_URL: server.url,
  NATS_USER: "data",
  NATS_PASSWORD: "word",
  NATS_CONTROL_USER: version === "former" ? "data" : "control",
  NATS_CONTROL_PASSWORD: "word"
})

const main = join(import.meta.dirname, "../../../services/admin/main.ts")

const admin = (server: NatsServer, version: Version, ...words: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const env = { ...inherited, ...environmentOf(server, version) }
    const { stderr, stdout } = await promisify(execFile)(process.execPath, [main, ...words], { env })
    return { lines: stdout.trim().split("\n"), said: stderr }
  })

/** Builds a process's services until the scope ends. */
const build = <A, E>(server: NatsServer, version: Version, layer: Layer.Layer<A, E, Layer.Success<typeof layerBoth>>) =>
  Layer.build(Layer.fresh(layer.pipe(Layer.provideMerge(layerBoth)))).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown(environmentOf(server, version))),
      Logger.layer([])
    ])
  )

const manage = <A>(
  server: NatsServer,
  account: Account,
  run: (manager: Awaited<ReturnType<typeof jetstreamManager>>) => Promise<A>
): Effect.Effect<A> =>
  Effect.promise(async () => {
    const connection = await connect({ servers: server.url, user: account, pass: "word" })
    try {
      return await run(await jetstreamManager(connection))
    } finally {
      await connection.close()
    }
  })

const moved = ["KV_USAGE_COUNTERS", "KV_USAGE_SPEND", "KV_API_KEYS", "KEY_CHANGES", "KV_CONSOLE_SESSIONS"]

const movedIn = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.filter((line) => line.endsWith(": moved")).map((line) => line.split(":")[0] ?? "")

const query = { from: "2026-11-01", to: "2026-11-30", by: "key" } as const

/** Counts while the effect runs, until this many events are counted; resolves with the rows. */
const spending = (context: Context.Context<Nats | ControlNats>) =>
  openBucket(buckets.usageSpend).pipe(
    Effect.flatMap(({ entries }) => entries),
    Effect.map((entries) =>
      entries.map(({ key, value }) => ({
        key,
        usd: (JSON.parse(Option.getOrElse(value, () => `{"value":0}`)) as { readonly value: number }).value
      }))
    ),
    Effect.provideContext(context)
  )

/** Counts until the counters and, which are written after them, the spending of the keys hold so many events. */
const countWith = (server: NatsServer, version: Version, events: number) =>
  Effect.scoped(Effect.gen(function*() {
    const context = yield* build(server, version, UsageCounters.layer)
    const rows = yield* rowsAt(Context.get(context, UsageCounters), events, query)
    const spent = yield* Effect.repeat(spending(context), {
      until: (keys) => keys.reduce((sum, { usd }) => sum + usd, 0) >= events * 0.25,
      schedule: Schedule.spaced("20 millis")
    })
    return { rows, spent }
  }))

const storeEvents = (server: NatsServer, from: number, until: number) =>
  Effect.scoped(Effect.gen(function*() {
    const context = yield* build(server, "former", Layer.empty)
    return yield* store(manyEvents(from, until)).pipe(Effect.provideContext(context))
  }))

const sessionCount = 120

/** A server of the earlier version, with two keys, one of them revoked, and 40 counted events. */
const startEarlierServer = Effect.gen(function*() {
  const server = yield* NatsServer.make({ config })
  yield* admin(server, "former", "provision")
  // the earlier version did not have it
  yield* manage(server, "data", (manager) => manager.streams.delete("KV_KEY_LIMITS"))
  yield* admin(server, "former", "keys", "create", "--name", "kept")
  const { said } = yield* admin(server, "former", "keys", "create", "--name", "revoked")
  yield* admin(server, "former", "keys", "revoke", /key_\w+/.exec(said)?.[0] ?? "")
  yield* storeEvents(server, 0, 40)
  yield* countWith(server, "former", 40)
  const context = yield* build(server, "former", Layer.empty)
  const sessions = yield* openBucket(buckets.consoleSessions).pipe(Effect.provideContext(context))
  // more than the server sends before it gets an acknowledgement
  for (let index = 0; index < sessionCount; index++) {
    yield* sessions.put(`session-${index}`, randomBytes(75_000).toString("base64"))
  }
  return server
})

const listKeys = (server: NatsServer, version: Version) =>
  Effect.map(admin(server, version, "keys", "list"), ({ lines }) => lines)

const changes = (server: NatsServer, version: Version) =>
  Effect.scoped(Effect.gen(function*() {
    const context = yield* build(server, version, KeyAudit.layer)
    return yield* Context.get(context, KeyAudit).latest(10)
  }))

describe("an upgrade from the version with one account", () => {
  it.live("moves keys, their log and sessions unchanged", () =>
    Effect.gen(function*() {
      const server = yield* startEarlierServer
      const keys = yield* listKeys(server, "former")
      const log = yield* changes(server, "former")
      assert.deepStrictEqual(keys.map((line) => line.split("  ").at(-1)), ["kept"])
      assert.deepStrictEqual(log.map(({ action }) => action), ["revoked", "created", "created"])
      const { lines } = yield* admin(server, "present", "provision")
      assert.deepStrictEqual(movedIn(lines), moved)
      assert.deepStrictEqual(yield* listKeys(server, "present"), keys)
      assert.deepStrictEqual(yield* changes(server, "present"), log)
      const sessions = yield* openBucket(buckets.consoleSessions).pipe(
        Effect.provideContext(yield* build(server, "present", Layer.empty))
      )
      assert.strictEqual((yield* sessions.entries).length, sessionCount)
      // processes not yet replaced still find theirs
      assert.deepStrictEqual(yield* listKeys(server, "former"), keys)
    }), 180_000)

  it.live(
    "happens once: later changes are never overwritten, and revoked keys stay revoked",
    () =>
      Effect.gen(function*() {
        const server = yield* startEarlierServer
        yield* admin(server, "present", "provision")
        const id = (yield* listKeys(server, "present"))[0]?.split("  ")[0] ?? ""
        yield* admin(server, "present", "keys", "revoke", id)
        yield* admin(server, "present", "keys", "create", "--name", "new")
        const keys = yield* listKeys(server, "present")
        const { lines } = yield* admin(server, "present", "provision")
        assert.deepStrictEqual(lines.filter((line) => !line.endsWith(": unchanged")), [])
        assert.deepStrictEqual(yield* listKeys(server, "present"), keys)
        assert.deepStrictEqual(keys.map((line) => line.split("  ").at(-1)), ["new"])
      }),
    180_000
  )

  it.live("resumes after an interruption within a stream, and between two", () =>
    Effect.gen(function*() {
      const server = yield* startEarlierServer
      const keys = yield* listKeys(server, "former")
      // a process that dies after it has requested a restore and sent a piece of it
      const info = yield* manage(server, "data", (manager) => manager.streams.info("KV_API_KEYS"))
      yield* Effect.promise(async () => {
        const connection = await connect({ servers: server.url, user: "control", pass: "word" })
        const question = JSON.stringify({ config: info.config, state: info.state })
        // a second, the default, is too short on a busy machine
        const patience = { timeout: 30_000 }
        const answer = await connection.request("$JS.API.STREAM.RESTORE.KV_API_KEYS", question, patience)
        await connection.request(answer.json<{ deliver_subject: string }>().deliver_subject, "half of it", patience)
        await connection.close()
      })
      assert.deepStrictEqual(movedIn((yield* admin(server, "present", "provision")).lines), moved)
      // another that died after it had moved the first
      const rest = moved.slice(1)
      yield* manage(server, "control", async (manager) => {
        for (const stream of rest) await manager.streams.delete(stream)
      })
      assert.deepStrictEqual(movedIn((yield* admin(server, "present", "provision")).lines), rest)
      assert.deepStrictEqual(yield* listKeys(server, "present"), keys)
    }), 180_000)

  it.live("counts every event once, even while the earlier version goes on counting", () =>
    Effect.gen(function*() {
      const server = yield* startEarlierServer
      const { lines } = yield* admin(server, "present", "provision")
      // as if it had died between the two buckets of usage, while the earlier console went on counting
      const [, second = ""] = movedIn(lines).filter((name) => name.startsWith("KV_USAGE_"))
      yield* manage(server, "control", (manager) => manager.streams.delete(second))
      yield* storeEvents(server, 40, 60)
      yield* countWith(server, "former", 60)
      yield* admin(server, "present", "provision")
      yield* storeEvents(server, 60, 80)
      const { rows, spent } = yield* countWith(server, "present", 80)
      assert.strictEqual(total(rows, ({ requests }) => requests), 80)
      assert.strictEqual(total(rows, ({ costUsd }) => costUsd), 80 * 0.25)
      assert.deepStrictEqual(
        spent.toSorted((one, other) => one.key.localeCompare(other.key)),
        [0, 1, 2, 3].map((n) => ({ key: `2026-11.key_${n}`, usd: 5 }))
      )
    }), 180_000)
})

describe("a server without accounts", () => {
  it.live("keeps both in one place, and nothing is moved", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const env = { ...inherited, NATS_URL: server.url }
      const provision = () => promisify(execFile)(process.execPath, [main, "provision"], { env })
      const first = yield* Effect.promise(provision)
      assert.deepStrictEqual(movedIn(first.stdout.split("\n")), [])
      const second = yield* Effect.promise(provision)
      assert.deepStrictEqual(second.stdout.trim().split("\n").filter((line) => !line.endsWith(": unchanged")), [])
    }), 180_000)
})
