/** Which origins `GATEWAY_CORS_ORIGINS` takes. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Layer } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { CrossOrigin } from "../../../services/ingress/exchange/CrossOrigin.ts"

const make = (value: string) =>
  Effect.provide(
    CrossOrigin,
    Layer.provide(
      CrossOrigin.layer,
      ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_CORS_ORIGINS: value }))
    )
  )

const answerFor = (origin: string, port: number) =>
  fetch(`http://127.0.0.1:${port}/`, { headers: { origin, connection: "close" } })

describe("GATEWAY_CORS_ORIGINS", () => {
  // an origin is a scheme, a host and a port unless it is the scheme's own: RFC 6454, 6.2
  const values: ReadonlyArray<readonly [value: string, isValid: boolean]> = [
    ["", true],
    ["*", true],
    ["https://app.example.com", true],
    ["http://localhost:5173,https://app.example.com ,", true],
    ["chrome-extension://abcdefghijklmnop", true],
    ["app://obsidian.md", true],
    ["tauri://localhost", true],
    ["http://[::1]:3000", true],
    ["https://app.example.com/", false],
    ["https://app.example.com/chat", false],
    ["https://app.example.com:443", false],
    ["https://App.example.com", false],
    ["https://*.example.com", false],
    ["app.example.com", false],
    ["localhost:5173", false],
    ["null", false]
  ]

  it.effect.each(values)("%s is accepted: %s", ([value, isValid]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(make(value))
      assert.strictEqual(Exit.isSuccess(exit), isValid)
      if (Exit.isFailure(exit)) assert.include(String(exit.cause), "GATEWAY_CORS_ORIGINS")
    }))

  it.effect("with * allows every origin, also that of files and sandboxed frames", () =>
    Effect.gen(function*() {
      const { refusedIn, take } = yield* make("*")
      assert.isUndefined(refusedIn({ origin: "null" }))
      const server = createServer((request, response) => void (take(request, response) || response.end("{}")))
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const { port } = server.address() as AddressInfo
      const { headers } = yield* Effect.promise(() => answerFor("null", port))
      assert.strictEqual(headers.get("access-control-allow-origin"), "*")
      assert.isNull(headers.get("vary"))
    }))
})
