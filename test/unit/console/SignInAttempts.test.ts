/** How long a sign-in may take, and what its cookie is worth. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { Cookies, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as Attempts from "../../../services/console/signin/Attempts.ts"

const settings = {
  GATEWAY_SECRET: "a secret of more than thirty-two characters",
  CONSOLE_PUBLIC_URL: "https://console.example"
}

const make = (environment: Readonly<Record<string, string>> = {}) =>
  Effect.provide(Attempts.make, ConfigProvider.layer(ConfigProvider.fromUnknown({ ...settings, ...environment })))

const cookiesOf = (
  setCookie: (response: HttpServerResponse.HttpServerResponse) => HttpServerResponse.HttpServerResponse
) => setCookie(HttpServerResponse.empty()).cookies

describe("a sign-in", () => {
  it.effect("is known by its cookie for ten minutes, at every console", () =>
    Effect.gen(function*() {
      const { proof, setCookie } = yield* (yield* make()).begin("/usage")
      const cookies = Cookies.toRecord(cookiesOf(setCookie))
      const other = yield* make()
      assert.deepStrictEqual(yield* other.find(cookies), { proof, to: "/usage" })
      yield* TestClock.adjust("599 seconds")
      assert.isDefined(yield* other.find(cookies))
      yield* TestClock.adjust("1 second")
      assert.isUndefined(yield* other.find(cookies))
    }))

  it.effect("has a cookie that only https carries, and that nobody else can make", () =>
    Effect.gen(function*() {
      const attempts = yield* make()
      const { setCookie } = yield* attempts.begin("/usage")
      assert.include(Cookies.toSetCookieHeaders(cookiesOf(setCookie))[0], "Secure")
      const [[name = "", value = ""] = []] = Object.entries(Cookies.toRecord(cookiesOf(setCookie)))
      const forgeries = [
        "",
        value.slice(0, -1),
        value.replace("/usage", "/keys"),
        value.replace("/usage", "//evil"),
        `${value}A`
      ]
      for (const forged of forgeries) assert.isUndefined(yield* attempts.find({ [name]: forged }), forged)
      const elsewhere = yield* make({ GATEWAY_SECRET: "another secret of more than thirty-two characters" })
      assert.isUndefined(yield* elsewhere.find({ [name]: value }))
    }))
})
