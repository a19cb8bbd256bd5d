/** The rules of signing in that are about time. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { AdminToken } from "../../services/console/AdminToken.ts"
import { Attempts } from "../../services/console/Attempts.ts"
import { lifetimeMs, Sessions } from "../../services/console/Sessions.ts"
import { ControlNats } from "../../shared/bus/Nats.ts"
import { testAdminToken, testSecret } from "../fixture/Gateway.ts"
import { NatsServer } from "../fixture/NatsServer.ts"

/** What a console with these settings knows of sessions. */
const sessionsOf = (server: NatsServer, settings: Record<string, string> = {}) =>
  Layer.build(Layer.fresh(Sessions.layer.pipe(Layer.provide([AdminToken.layer, ControlNats.layer])))).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({
      NATS_URL: server.url,
      GATEWAY_SECRET: testSecret,
      CONSOLE_ADMIN_TOKEN: testAdminToken,
      ...settings
    }))),
    Effect.map((context) => Context.get(context, Sessions))
  )

describe("a session", () => {
  it.effect("is known by its cookie at every console, until it ends", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const sessions = yield* sessionsOf(server)
      const { cookie, session } = yield* sessions.begin("Ada")
      assert.deepStrictEqual(yield* sessions.find(cookie), Option.some(session))
      assert.notInclude(JSON.stringify(session), Redacted.value(cookie).slice(0, 32))
      const other = yield* sessionsOf(server)
      assert.deepStrictEqual(yield* other.find(cookie), Option.some(session))
      yield* other.end(session)
      // whoever kept the cookie has nothing
      assert.isTrue(Option.isNone(yield* sessions.find(cookie)))
    }))

  it.effect("ends by age, whatever becomes of its record", () =>
    Effect.gen(function*() {
      const sessions = yield* sessionsOf(yield* NatsServer.make())
      const { cookie } = yield* sessions.begin("Ada")
      yield* TestClock.adjust(lifetimeMs - 1_000)
      assert.isTrue(Option.isSome(yield* sessions.find(cookie)))
      yield* TestClock.adjust(1_000)
      assert.isTrue(Option.isNone(yield* sessions.find(cookie)))
    }))

  it.effect("cannot be made up, stretched, or kept over a change of the token or the secret", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const sessions = yield* sessionsOf(server)
      const text = Redacted.value((yield* sessions.begin("Ada")).cookie)
      const [secret = "", expires = "", signature = ""] = text.split(".")
      const forgeries = [
        "",
        "..",
        `${secret}.${Number(expires) + 1}.${signature}`,
        `${"A".repeat(32)}.${expires}.${signature}`,
        `${secret}.${expires}.${"A".repeat(43)}`,
        `${secret}.${expires}.`,
        `${secret}.${expires}`,
        `${text}A`,
        ` ${text}`
      ]
      for (const forged of forgeries) {
        assert.isTrue(Option.isNone(yield* sessions.find(Redacted.make(forged))), forged)
      }
      const elsewhere: ReadonlyArray<Record<string, string>> = [
        { CONSOLE_ADMIN_TOKEN: "another token of the tests" },
        { GATEWAY_SECRET: "another secret of more than thirty-two characters" }
      ]
      for (const settings of elsewhere) {
        const other = yield* sessionsOf(server, settings)
        assert.isTrue(Option.isNone(yield* other.find(Redacted.make(text))))
      }
    }))
})

/** A comparison on behalf of an address. */
const from = (address: string) =>
  Effect.provideService(
    HttpServerRequest.HttpServerRequest,
    HttpServerRequest.fromWeb(new Request("http://console/")).modify({ remoteAddress: Option.some(address) })
  )

describe("guessing", () => {
  const fresh = Effect.map(Layer.build(Layer.fresh(Attempts.layer)), (context) => Context.get(context, Attempts))

  it.effect("is over for an address after five wrong tokens in a minute, for the right one too", () =>
    Effect.gen(function*() {
      const { judge } = yield* fresh
      for (let wrong = 0; wrong < 5; wrong++) assert.isFalse(yield* from("10.0.0.1")(judge(() => false)))
      let compared = false
      const refused = yield* Effect.flip(from("10.0.0.1")(judge(() => compared = true)))
      assert.strictEqual(refused._tag, "TooManyAttempts")
      assert.isFalse(compared)
      assert.isTrue(yield* from("10.0.0.2")(judge(() => true)))
      yield* TestClock.adjust(refused.retryAfterMs)
      assert.isTrue(yield* from("10.0.0.1")(judge(() => true)))
    }))

  it.effect("counts the addresses of one IPv6 network as one", () =>
    Effect.gen(function*() {
      const { judge } = yield* fresh
      for (let wrong = 0; wrong < 5; wrong++) yield* from(`2001:db8::${wrong}`)(judge(() => false))
      assert.strictEqual((yield* Effect.flip(from("2001:db8:0:0:ffff::1")(judge(() => true))))._tag, "TooManyAttempts")
      assert.isTrue(yield* from("2001:db8:0:1::1")(judge(() => true)))
    }))

  it.effect("is over for everybody after a hundred wrong tokens in a minute", () =>
    Effect.gen(function*() {
      const { judge } = yield* fresh
      for (let wrong = 0; wrong < 100; wrong++) yield* from(`10.0.0.${wrong}`)(judge(() => false))
      assert.strictEqual((yield* Effect.flip(from("10.1.0.1")(judge(() => true))))._tag, "TooManyAttempts")
      yield* TestClock.adjust("1 minute")
      assert.isTrue(yield* from("10.1.0.1")(judge(() => true)))
    }))

  it.effect("by right tokens is no guessing", () =>
    Effect.gen(function*() {
      const { judge } = yield* fresh
      for (let right = 0; right < 200; right++) assert.isTrue(yield* from("10.0.0.1")(judge(() => true)))
    }))
})
