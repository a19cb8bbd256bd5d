/** API keys from creation to revocation, in a real bucket and at ingress. */
import { assert, describe, it } from "@effect/vitest"
import {
  ConfigProvider,
  Context,
  DateTime,
  Effect,
  Layer,
  Logger,
  Option,
  Redacted,
  Result,
  Schedule,
  Schema
} from "effect"
import { TestClock } from "effect/testing"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { ControlNats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as ApiKey from "../../../shared/keys/ApiKey.ts"
import { KeyChanges, type KeySettings } from "../../../shared/keys/KeySettings.ts"
import { KeyRefused, KeyRing } from "../../../shared/keys/KeyRing.ts"
import { KeyNotFound, KeyStore } from "../../../shared/keys/KeyStore.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** An administrator's process: a connection of its own and the store. */
const administrator = (server: NatsServer, settings?: Record<string, string>) =>
  build(server, KeyStore.layer.pipe(Layer.provideMerge(ControlNats.layer)), settings)
/** An ingress process. */
const ingress = (server: NatsServer) => build(server, KeyRing.layer.pipe(Layer.provideMerge(ControlNats.layer)))

const build = <A, E>(server: NatsServer, layer: Layer.Layer<A, E>, settings: Record<string, string> = {}) =>
  Layer.build(Layer.fresh(layer)).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url, ...settings })),
      // some of these tests lose the server on purpose
      Logger.layer([])
    ])
  )

const startBoth = Effect.gen(function*() {
  const server = yield* NatsServer.make()
  const admin = yield* administrator(server)
  const face = yield* ingress(server)
  return {
    server,
    nats: Context.get(face, ControlNats),
    bucket: yield* openBucket(buckets.apiKeys).pipe(Effect.provideContext(admin)),
    store: Context.get(admin, KeyStore),
    ring: Context.get(face, KeyRing)
  }
})

/** Waits until ingress gives the expected result for a key. */
const untilResult = (ring: KeyRing["Service"], secret: string, expected: string) =>
  Effect.context<never>().pipe(Effect.flatMap((context) => {
    const word = Effect.result(Effect.suspend(() => ring.authenticate(secret))).pipe(
      Effect.map((result) => Result.isSuccess(result) ? result.success.name : result.failure.reason)
    )
    // the watch runs on the real clock
    return Effect.promise(() => eventually(() => Effect.runPromiseWith(context)(word), (word) => word === expected))
  }))

const options = (name: string, expiresAt: DateTime.Utc | null = null) => ({ name, expiresAt })
const unknown = `sk-gw-${"0".repeat(32)}`

describe("a key", () => {
  it.live("is shown once, stored as a fingerprint, and recognised by its secret only", () =>
    Effect.gen(function*() {
      const { bucket, ring, store } = yield* startBoth
      const { key, secret } = yield* store.create(options("first"))
      const text = Redacted.value(secret)
      assert.match(text, ApiKey.secretPattern)
      assert.match(key.id, /^key_[0-9A-Za-z]{12}$/)
      assert.notInclude(String(secret), text)
      const stored = yield* bucket.entries
      assert.deepStrictEqual(stored.map(({ key }) => key), [ApiKey.fingerprint(text)])
      for (const { value } of stored) assert.notInclude(Option.getOrThrow(value), text.slice("sk-gw-".length))

      yield* untilResult(ring, text, "first")
      assert.strictEqual((yield* ring.authenticate(text)).id, key.id)
      for (const other of [unknown, text.slice(0, -1), `${text}0`, text.toLowerCase(), key.id, "", "\0"]) {
        assert.deepStrictEqual(yield* Effect.flip(ring.authenticate(other)), new KeyRefused({ reason: "unknown" }))
      }
    }))

  it.live("is unique", () =>
    Effect.gen(function*() {
      const secrets = yield* Effect.all(Array.from({ length: 500 }, () => ApiKey.generateSecret("sk-gw-")))
      const texts = secrets.map((secret) => Redacted.value(secret))
      assert.strictEqual(new Set(texts).size, 500)
      // every character of the alphabet appears in 16,000 draws of 62
      assert.strictEqual(new Set(texts.flatMap((text) => [...text.slice("sk-gw-".length)])).size, 62)
    }))

  it.live("begins with the configured prefix, and stays valid when that changes", () =>
    Effect.gen(function*() {
      const { ring, server, store } = yield* startBoth
      const { secret: before } = yield* store.create(options("before"))
      const other = Context.get(yield* administrator(server, { GATEWAY_KEY_PREFIX: "acme_live-" }), KeyStore)
      const { secret: after } = yield* other.create(options("after"))
      assert.match(Redacted.value(after), /^acme_live-[0-9A-Za-z]{32}$/)
      yield* untilResult(ring, Redacted.value(before), "before")
      yield* untilResult(ring, Redacted.value(after), "after")
      const mistake = yield* Effect.flip(administrator(server, { GATEWAY_KEY_PREFIX: "Bearer " }))
      assert.include(String(mistake), "GATEWAY_KEY_PREFIX")
    }))

  it.live("can be listed and revoked by its id, and is rejected afterwards", () =>
    Effect.gen(function*() {
      const { ring, store } = yield* startBoth
      const made = yield* Effect.forEach(["one", "two", "three"], (name) => store.create(options(name)))
      const names = Effect.map(store.list, (keys) => keys.map(({ name }) => name).toSorted())
      assert.deepStrictEqual(yield* names, ["one", "three", "two"])
      for (const { key, secret } of made) yield* untilResult(ring, Redacted.value(secret), key.name)

      const [one, two, three] = made
      const revoked = yield* store.revoke(two!.key.id)
      assert.strictEqual(revoked.name, "two")
      yield* untilResult(ring, Redacted.value(two!.secret), "unknown")
      assert.deepStrictEqual(yield* names, ["one", "three"])
      for (const { key, secret } of [one!, three!]) {
        assert.strictEqual((yield* ring.authenticate(Redacted.value(secret))).id, key.id)
      }
      for (const id of [two!.key.id, "key_unknown", ""]) {
        assert.deepStrictEqual(yield* Effect.flip(store.revoke(id)), new KeyNotFound({ id }))
      }
    }))

  it.live("passes its settings and its owner on to its replacement, and so on", () =>
    Effect.gen(function*() {
      const { bucket, ring, store } = yield* startBoth
      const first = yield* store.create({ ...options("first"), weight: 3, disabled: true })
      assert.strictEqual(first.key.owner, first.key.id)
      const second = yield* store.replace(first.key.id)
      const third = yield* store.replace(second.key.id)
      assert.strictEqual(new Set([first, second, third].map(({ key }) => key.id)).size, 3)
      assert.deepInclude(third.key, { name: "first", weight: 3, disabled: false, owner: first.key.id, editedAt: null })
      yield* store.revoke(first.key.id)
      yield* untilResult(ring, Redacted.value(third.secret), "first")
      assert.strictEqual((yield* ring.authenticate(Redacted.value(third.secret))).owner, first.key.id)
      assert.deepStrictEqual(
        yield* Effect.flip(store.replace(first.key.id)),
        new KeyNotFound({ id: first.key.id })
      )
      // as older versions stored it
      const { owner: _owner, ...old } = JSON.parse(
        Option.getOrThrow(yield* bucket.get(ApiKey.fingerprint(Redacted.value(second.secret))))
      ) as Record<string, unknown>
      yield* bucket.put(ApiKey.fingerprint(unknown), JSON.stringify({ ...old, id: "key_old", name: "old" }))
      yield* untilResult(ring, unknown, "old")
      assert.strictEqual((yield* ring.authenticate(unknown)).owner, "key_old")
    }))

  it.live("of a given secret is created once, however often and from however many processes it is requested", () =>
    Effect.gen(function*() {
      const { ring, server, store } = yield* startBoth
      const other = Context.get(yield* administrator(server), KeyStore)
      const secret = Redacted.make(unknown)
      yield* Effect.forEach(
        [store, other, store, other],
        (store, index) => store.ensure({ name: `bootstrap ${index}`, secret }),
        { concurrency: "unbounded" }
      ).pipe(
        Effect.map((outcomes) => assert.deepStrictEqual(outcomes.toSorted(), ["created", "exists", "exists", "exists"]))
      )
      const [key, ...more] = yield* store.list
      assert.deepStrictEqual(more, [])
      yield* untilResult(ring, unknown, key!.name)
      assert.strictEqual((yield* ring.authenticate(unknown)).id, key!.id)
      // not once it was revoked
      yield* store.revoke(key!.id)
      yield* untilResult(ring, unknown, "unknown")
      assert.strictEqual(yield* other.ensure({ name: "again", secret }), "revoked")
      assert.deepStrictEqual(yield* store.list, [])
    }))

  it.live("is imported by its fingerprint once, and never again after it was revoked", () =>
    Effect.gen(function*() {
      const { ring, server, store } = yield* startBoth
      const fingerprint = ApiKey.fingerprint(unknown)
      const imported = Option.getOrThrow(yield* store.importHashed(fingerprint, { name: "imported" }))
      yield* untilResult(ring, unknown, "imported")
      const other = Context.get(yield* administrator(server), KeyStore)
      assert.isTrue(Option.isNone(yield* other.importHashed(fingerprint, { name: "again" })))
      yield* store.revoke(imported.id)
      assert.isTrue(Option.isNone(yield* other.importHashed(fingerprint, { name: "again" })))
      assert.deepStrictEqual(yield* store.list, [])
      yield* untilResult(ring, unknown, "unknown")
    }))

  it.live("is rejected while disabled, and accepted again once enabled", () =>
    Effect.gen(function*() {
      const { ring, store } = yield* startBoth
      const { key, secret } = yield* store.create(options("sometimes"))
      yield* store.edit(key.id, { disabled: true })
      yield* untilResult(ring, Redacted.value(secret), "disabled")
      yield* store.edit(key.id, { disabled: false })
      yield* untilResult(ring, Redacted.value(secret), "sometimes")
    }))

  it.live("from before limits existed has no limits", () =>
    Effect.gen(function*() {
      const { bucket, ring, store } = yield* startBoth
      yield* bucket.put(
        ApiKey.fingerprint(unknown),
        `{"id":"key_0123456789ab","name":"old","createdAt":"2026-01-01T00:00:00.000Z","expiresAt":null,"disabled":false}`
      )
      yield* untilResult(ring, unknown, "old")
      const key = yield* ring.authenticate(unknown)
      const fresh = yield* ApiKey.make({ name: "old" })
      assert.deepStrictEqual(key, { ...fresh, id: key.id, owner: key.id, createdAt: key.createdAt })
      assert.isTrue(ApiKey.allows(key, "any/model"))
      assert.isNull(key.requestsPerMinute)
      assert.deepInclude(yield* store.edit(key.id, { weight: 5 }), {
        name: "old",
        weight: 5,
        priorityClass: "standard"
      })
    }))

  it.live("is edited field by field, by several at once, and records the time", () =>
    Effect.gen(function*() {
      const { ring, server, store } = yield* startBoth
      const other = Context.get(yield* administrator(server), KeyStore)
      const { key, secret } = yield* store.create({ name: "edited", requestsPerMinute: 10 })
      assert.isNull(key.editedAt)
      yield* Effect.all([
        store.edit(key.id, { name: "renamed", tokensPerMinute: 1_000 }),
        other.edit(key.id, { allowedModels: ["a", "b*"], monthlyBudgetUsd: 2.5 }),
        other.edit(key.id, { priorityClass: "batch", requestsPerMinute: null })
      ], { concurrency: "unbounded" })
      yield* untilResult(ring, Redacted.value(secret), "renamed")
      const [edited, ...more] = yield* store.list
      assert.deepStrictEqual(more, [])
      assert.deepInclude(edited, {
        id: key.id,
        createdAt: key.createdAt,
        name: "renamed",
        tokensPerMinute: 1_000,
        allowedModels: ["a", "b*"],
        monthlyBudgetUsd: 2.5,
        priorityClass: "batch",
        requestsPerMinute: null
      })
      assert.isNotNull(edited?.editedAt)
      yield* store.revoke(key.id)
      assert.deepStrictEqual(
        yield* Effect.flip(other.edit(key.id, { disabled: true })),
        new KeyNotFound({ id: key.id })
      )
    }))

  it.live("is edited however many other edits come first", () =>
    Effect.gen(function*() {
      const { server, store } = yield* startBoth
      const other = Context.get(yield* administrator(server), KeyStore)
      const { key } = yield* store.create(options("contended"))
      const others = [2, 3, 4, 5, 6, 7]
      // one between each check and the write
      const check = () => {
        const weight = others.shift()
        return weight === undefined ? Effect.void : Effect.orDie(other.edit(key.id, { weight }))
      }
      yield* store.edit(key.id, { name: "edited" }, check)
      assert.deepInclude((yield* store.list)[0], { name: "edited", weight: 7 })
    }))

  it.live("is edited only if a check accepts the record that the edit replaces", () =>
    Effect.gen(function*() {
      const { server, store } = yield* startBoth
      const other = Context.get(yield* administrator(server), KeyStore)
      const { key } = yield* store.create(options("checked"))
      const seen: Array<boolean> = []
      const check = Effect.fnUntraced(function*(record: ApiKey.ApiKey) {
        seen.push(record.disabled)
        if (record.disabled) return yield* Effect.fail("disabled")
        // this edit comes between the check and the write
        yield* other.edit(key.id, { disabled: true })
      })
      const edit = store.edit(key.id, { disabled: false, name: "enabled" }, check)
      assert.strictEqual(yield* Effect.flip(edit), "disabled")
      assert.deepStrictEqual(seen, [false, true])
      assert.deepInclude((yield* store.list)[0], { name: "checked", disabled: true })
    }))

  it("allows models by name or prefix", () => {
    const allowed = (allowedModels: KeySettings["allowedModels"]) =>
      ["gpt", "gpt-5", "org/gpt-5", "*"].filter((model) => ApiKey.allows({ allowedModels }, model))
    assert.deepStrictEqual(allowed(["*"]), ["gpt", "gpt-5", "org/gpt-5", "*"])
    assert.deepStrictEqual(allowed(["gpt"]), ["gpt"])
    assert.deepStrictEqual(allowed(["gpt*"]), ["gpt", "gpt-5"])
    assert.deepStrictEqual(allowed(["gpt-*", "org/*"]), ["gpt-5", "org/gpt-5"])
    assert.deepStrictEqual(allowed(["other"]), [])
  })

  it("expires at a valid moment only", () => {
    const decode = Schema.decodeUnknownOption(KeyChanges)
    const read = (expiresAt: unknown) =>
      Option.match(decode({ expiresAt }), {
        onNone: () => "none",
        onSome: ({ expiresAt = null }) => expiresAt === null ? "never" : DateTime.formatIso(expiresAt)
      })
    const moments = [
      [null, "never"],
      ["2027-01-31", "2027-01-31T00:00:00.000Z"],
      ["2028-02-29", "2028-02-29T00:00:00.000Z"],
      ["2027-01-31T12:00", "2027-01-31T12:00:00.000Z"],
      ["2027-01-31T12:00:30.5Z", "2027-01-31T12:00:30.500Z"],
      ["2027-01-31T23:00:00-02:00", "2027-02-01T01:00:00.000Z"],
      // as stored before
      ["+010000-01-01T00:00:00.000Z", "+010000-01-01T00:00:00.000Z"]
    ]
    for (const [text, moment] of moments) assert.strictEqual(read(text), moment)
    const others = ["12", "5", "1.2.2027", "01/02/2027", "Jan 31 2027", "2027", "2027-01", "2027-02-29", "2027-02-31"]
    for (const text of [...others, "2027-13-01", "2027-01-31T25:00", "2027-01-31 ", "", 1, "none"]) {
      assert.strictEqual(read(text), "none", String(text))
    }
  })

  it.effect("is rejected from the moment it expires", () =>
    Effect.gen(function*() {
      const { ring, store } = yield* startBoth
      const { secret } = yield* store.create(options("brief", DateTime.makeUnsafe(3_600_000)))
      const text = Redacted.value(secret)
      yield* untilResult(ring, text, "brief")
      yield* TestClock.adjust(3_599_999)
      assert.strictEqual((yield* ring.authenticate(text)).name, "brief")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* Effect.flip(ring.authenticate(text)), new KeyRefused({ reason: "expired" }))
    }))

  it.live("with an unreadable record is invalid and affects no other", () =>
    Effect.gen(function*() {
      const { bucket, ring, server, store } = yield* startBoth
      yield* bucket.put(ApiKey.fingerprint(unknown), `{"id":"key_from_the_future","roles":["admin"]}`)
      yield* bucket.put(ApiKey.fingerprint("other"), "no JSON")
      const { secret } = yield* store.create(options("known"))
      yield* untilResult(ring, Redacted.value(secret), "known")
      assert.deepStrictEqual((yield* store.list).map(({ name }) => name), ["known"])
      const late = Context.get(yield* ingress(server), KeyRing)
      assert.strictEqual((yield* late.authenticate(Redacted.value(secret))).name, "known")
      assert.deepStrictEqual(yield* Effect.flip(late.authenticate(unknown)), new KeyRefused({ reason: "unknown" }))
    }))
})

describe("ingress", () => {
  it.live("knows every key once it is ready", () =>
    Effect.gen(function*() {
      const { server, store } = yield* startBoth
      const made = yield* Effect.forEach(Array.from({ length: 200 }, (_, index) => `${index}`), (name) =>
        store.create(options(name)), { concurrency: 20 })
      yield* store.revoke(made[7]!.key.id)
      const late = Context.get(yield* ingress(server), KeyRing)
      assert.isTrue(late.isLoaded())
      for (
        const { key, secret } of made.filter((_, index) =>
          index !== 7
        )
      ) {
        assert.strictEqual((yield* late.authenticate(Redacted.value(secret))).id, key.id)
        assert.strictEqual((yield* late.find(key.id)).name, key.name)
      }
      assert.strictEqual((yield* Effect.flip(late.authenticate(Redacted.value(made[7]!.secret)))).reason, "unknown")
      assert.strictEqual((yield* Effect.flip(late.find(made[7]!.key.id))).reason, "unknown")
    }))

  it.live("keeps its keys while the server is killed, and learns the changes made meanwhile", () =>
    Effect.gen(function*() {
      const { nats, ring, server, store } = yield* startBoth
      const [kept, revoked] = yield* Effect.forEach(["kept", "revoked"], (name) => store.create(options(name)))
      const [keptText, revokedText] = [Redacted.value(kept!.secret), Redacted.value(revoked!.secret)]
      yield* untilResult(ring, keptText, "kept")
      yield* untilResult(ring, revokedText, "revoked")
      yield* Effect.promise(() => server.kill())
      yield* Effect.sync(() => nats.isConnected()).pipe(
        Effect.repeat({ until: (connected) => !connected, schedule: Schedule.spaced("2 millis") })
      )
      assert.strictEqual((yield* ring.authenticate(keptText)).name, "kept")
      assert.strictEqual((yield* Effect.flip(ring.authenticate(unknown))).reason, "unknown")

      yield* Effect.promise(() => server.restart())
      const admin = Context.get(yield* administrator(server), KeyStore)
      assert.deepStrictEqual((yield* admin.list).map(({ name }) => name).toSorted(), ["kept", "revoked"])
      yield* admin.revoke(revoked!.key.id)
      const added = yield* admin.create(options("added"))
      yield* untilResult(ring, revokedText, "unknown")
      yield* untilResult(ring, Redacted.value(added.secret), "added")
      assert.strictEqual((yield* ring.authenticate(keptText)).id, kept!.key.id)
    }))

  it.effect("rejects a key that it could not verify for ten minutes", () =>
    Effect.gen(function*() {
      const { nats, ring, server, store } = yield* startBoth
      const { secret } = yield* store.create(options("old"))
      const text = Redacted.value(secret)
      yield* untilResult(ring, text, "old")
      yield* Effect.promise(() => server.kill())
      yield* Effect.promise(() => new Promise(setImmediate)).pipe(Effect.repeat({ until: () => !nats.isConnected() }))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual((yield* ring.authenticate(text)).name, "old")
      assert.isTrue(ring.isLoaded())
      yield* TestClock.adjust(1)
      // ingress is not ready either
      assert.isFalse(ring.isLoaded())
      assert.deepStrictEqual(yield* Effect.flip(ring.authenticate(text)), new KeyRefused({ reason: "unverifiable" }))
    }))
})
