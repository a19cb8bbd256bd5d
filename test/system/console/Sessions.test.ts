/** The time limits of sign-in. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Fiber, Layer, Option, Redacted, Result } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { AdminToken } from "../../../services/console/access/AdminToken.ts"
import { OidcSettings } from "../../../services/console/access/OidcSettings.ts"
import { TokenThrottle } from "../../../services/console/access/TokenThrottle.ts"
import { Sessions } from "../../../services/console/access/Sessions.ts"
import { ControlNats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { testAdminToken, testSecret } from "../../fixture/gateway/Gateway.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** The session service of a console with these settings. */
const sessionsOf = (server: NatsServer, settings: Record<string, string> = {}) =>
  Layer.build(Layer.fresh(
    Sessions.layer.pipe(Layer.provide([AdminToken.layer, ControlNats.layer]), Layer.provide(OidcSettings.layer))
  )).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({
      NATS_URL: server.url,
      GATEWAY_SECRET: testSecret,
      CONSOLE_ADMIN_TOKEN: testAdminToken,
      ...settings
    }))),
    Effect.map((context) => Context.get(context, Sessions))
  )

/** The settings of sign-in with an OpenID provider. */
const oidc = {
  CONSOLE_PUBLIC_URL: "https://console.example",
  CONSOLE_OIDC_ISSUER: "https://identity.example",
  CONSOLE_OIDC_CLIENT_ID: "console",
  CONSOLE_OIDC_CLIENT_SECRET: "the secret of the client",
  CONSOLE_OIDC_ROLES: "{ operators: admin }"
}

const ada = { name: "Ada", role: "admin", teams: [] } as const
const atProvider = { subject: "ada", sid: "sid-1", idToken: null }
const lifetimeMs = buckets.consoleSessions.ttlMs

describe("a session", () => {
  it.effect("is valid by its cookie at every console, until it ends", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const sessions = yield* sessionsOf(server)
      const { cookie, session } = yield* sessions.begin(ada, null)
      assert.deepStrictEqual(yield* sessions.find(cookie), Option.some(session))
      assert.notInclude(JSON.stringify(session), Redacted.value(cookie).slice(0, 32))
      const other = yield* sessionsOf(server)
      assert.deepStrictEqual(yield* other.find(cookie), Option.some(session))
      yield* other.end(session)
      // a kept cookie is worthless
      assert.isTrue(Option.isNone(yield* sessions.find(cookie)))
    }))

  it.effect("expires, whatever happens to its record", () =>
    Effect.gen(function*() {
      const sessions = yield* sessionsOf(yield* NatsServer.make())
      const { cookie } = yield* sessions.begin(ada, null)
      yield* TestClock.adjust(lifetimeMs - 1_000)
      assert.isTrue(Option.isSome(yield* sessions.find(cookie)))
      yield* TestClock.adjust(1_000)
      assert.isTrue(Option.isNone(yield* sessions.find(cookie)))
    }))

  it.effect("lasts as long as the operator says", () =>
    Effect.gen(function*() {
      const sessions = yield* sessionsOf(yield* NatsServer.make(), { CONSOLE_SESSION_HOURS: "1" })
      const { cookie } = yield* sessions.begin(ada, null)
      yield* TestClock.adjust("59 minutes")
      assert.isTrue(Option.isSome(yield* sessions.find(cookie)))
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isNone(yield* sessions.find(cookie)))
    }))

  it.effect("of the OpenID provider outlives another admin token, but no other settings of the provider", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const sessions = yield* sessionsOf(server, oidc)
      const { cookie, session } = yield* sessions.begin(ada, atProvider)
      const withoutToken = yield* sessionsOf(server, { ...oidc, CONSOLE_ADMIN_TOKEN_ENABLED: "false" })
      assert.deepStrictEqual(yield* withoutToken.find(cookie), Option.some(session))
      const others = [
        {},
        { ...oidc, CONSOLE_OIDC_ROLES: "{ operators: auditor }" },
        { ...oidc, CONSOLE_OIDC_ISSUER: "https://other.example" },
        { ...oidc, CONSOLE_OIDC_CLIENT_ID: "other" },
        { ...oidc, CONSOLE_OIDC_GROUPS_CLAIM: "roles" }
      ]
      for (const settings of others) {
        assert.isTrue(
          Option.isNone(yield* (yield* sessionsOf(server, settings)).find(cookie)),
          JSON.stringify(settings)
        )
      }
      // nor does a session of the token outlive the token
      const byToken = yield* sessions.begin(ada, null)
      assert.isTrue(Option.isNone(yield* withoutToken.find(byToken.cookie)))
    }))

  it.effect("of the OpenID provider ends by the provider's session, by the person, or by both", () =>
    Effect.gen(function*() {
      const sessions = yield* sessionsOf(yield* NatsServer.make(), oidc)
      const begin = (provider: typeof atProvider | null) => sessions.begin(ada, provider)
      const first = yield* begin(atProvider)
      const second = yield* begin({ ...atProvider, sid: "sid-2" })
      const grace = yield* begin({ ...atProvider, subject: "grace", sid: "sid-3" })
      const byToken = yield* begin(null)
      const all = [first, second, grace, byToken]
      const left = Effect.map(
        Effect.forEach(all, ({ cookie }) => sessions.find(cookie)),
        (found) => found.map(Option.isSome)
      )
      assert.strictEqual(yield* sessions.endAll({ sid: undefined, subject: undefined }), 0)
      assert.strictEqual(yield* sessions.endAll({ sid: "sid-1", subject: "grace" }), 0)
      assert.deepStrictEqual(yield* left, [true, true, true, true])
      assert.strictEqual(yield* sessions.endAll({ sid: "sid-1", subject: undefined }), 1)
      assert.deepStrictEqual(yield* left, [false, true, true, true])
      assert.strictEqual(yield* sessions.endAll({ sid: undefined, subject: "ada" }), 1)
      assert.deepStrictEqual(yield* left, [false, false, true, true])
    }))

  it.effect("cannot be forged, prolonged, or kept after a change of the token or the secret", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const sessions = yield* sessionsOf(server)
      const text = Redacted.value((yield* sessions.begin(ada, null)).cookie)
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

/** Runs a comparison for an address. */
const from = (address: string) =>
  Effect.provideService(
    HttpServerRequest.HttpServerRequest,
    HttpServerRequest.fromWeb(new Request("http://console/")).modify({ remoteAddress: Option.some(address) })
  )

describe("guessing", () => {
  const fresh = Effect.map(
    Layer.build(Layer.fresh(TokenThrottle.layer)),
    (context) => Context.get(context, TokenThrottle)
  )

  /** Compares a wrong token. Resolves with the answer and the time it took, in milliseconds of the test's clock. */
  const guess = (judge: TokenThrottle["Service"]["check"], address: string) =>
    Effect.gen(function*() {
      const began = yield* Clock.currentTimeMillis
      const answer = yield* Effect.forkChild(Effect.result(from(address)(judge(() => false))))
      yield* TestClock.adjust(0)
      while (answer.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
      const result = yield* Fiber.join(answer)
      const said = Result.match(result, { onSuccess: String, onFailure: ({ _tag }) => _tag })
      return [said, (yield* Clock.currentTimeMillis) - began] as const
    })

  it.effect("is throttled for an address after five wrong tokens in a minute, but the right one passes", () =>
    Effect.gen(function*() {
      const { check: judge } = yield* fresh
      for (let wrong = 0; wrong < 5; wrong++) assert.deepStrictEqual(yield* guess(judge, "10.0.0.1"), ["false", 0])
      for (let wrong = 0; wrong < 3; wrong++) {
        assert.deepStrictEqual(yield* guess(judge, "10.0.0.1"), ["TooManyAttempts", 1_000])
        const before = yield* Clock.currentTimeMillis
        assert.isTrue(yield* from("10.0.0.1")(judge(() => true)))
        assert.strictEqual(yield* Clock.currentTimeMillis, before)
      }
      assert.deepStrictEqual(yield* guess(judge, "10.0.0.2"), ["false", 0])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* guess(judge, "10.0.0.1"), ["false", 0])
    }))

  it.effect("counts the addresses of one IPv6 network together", () =>
    Effect.gen(function*() {
      const { check: judge } = yield* fresh
      for (let wrong = 0; wrong < 5; wrong++) yield* guess(judge, `2001:db8::${wrong}`)
      assert.strictEqual((yield* guess(judge, "2001:db8:0:0:ffff::1"))[0], "TooManyAttempts")
      assert.strictEqual((yield* guess(judge, "2001:db8:0:1::1"))[0], "false")
    }))

  it.effect("is throttled for all after a hundred wrong tokens in a minute", () =>
    Effect.gen(function*() {
      const { check: judge } = yield* fresh
      for (let wrong = 0; wrong < 100; wrong++) yield* guess(judge, `10.0.0.${wrong}`)
      assert.strictEqual((yield* guess(judge, "10.1.0.1"))[0], "TooManyAttempts")
      assert.isTrue(yield* from("10.1.0.2")(judge(() => true)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* guess(judge, "10.1.0.1"))[0], "false")
    }))

  it.effect("delays at most ten answers per address and a hundred in all at once", () =>
    Effect.gen(function*() {
      const { check: judge } = yield* fresh
      const flood = (addresses: number, each: number) =>
        Effect.forEach(
          Array.from({ length: addresses * each }, (_, at) => `10.2.${Math.floor(at / each)}.1`),
          (address) => Effect.forkChild(Effect.result(from(address)(judge(() => false))))
        )
      const waiting = (fibers: ReadonlyArray<Fiber.Fiber<unknown>>) =>
        fibers.filter((fiber) => fiber.pollUnsafe() === undefined).length
      const own = yield* flood(1, 1_000)
      yield* TestClock.adjust(0)
      assert.strictEqual(waiting(own), 10)
      const others = yield* flood(100, 20)
      yield* TestClock.adjust(0)
      assert.strictEqual(waiting(own) + waiting(others), 100)
      assert.isTrue(yield* from("10.2.0.1")(judge(() => true)))
      // a client that disconnects makes room
      yield* Effect.forEach(own, Fiber.interrupt)
      const next = yield* flood(1, 20)
      yield* TestClock.adjust(0)
      assert.strictEqual(waiting(next), 10)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(waiting([...others, ...next]), 0)
    }))

  it.effect("does not count right tokens", () =>
    Effect.gen(function*() {
      const { check: judge } = yield* fresh
      for (let right = 0; right < 200; right++) assert.isTrue(yield* from("10.0.0.1")(judge(() => true)))
      assert.deepStrictEqual(yield* guess(judge, "10.0.0.1"), ["false", 0])
    }))
})
