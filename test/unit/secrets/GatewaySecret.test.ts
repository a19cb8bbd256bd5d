/** The keys of a gateway remain the same, however its secrets are written in the list. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { deriveKeys, isUsable } from "../../../shared/secrets/GatewaySecret.ts"

const one = "1".repeat(32)
const other = "2".repeat(32)

/** The keys that derive from this value of the variable, in hexadecimal digits. */
const keysOf = (value: string) =>
  deriveKeys("records").pipe(
    Effect.map((keys) => keys.map((key) => Buffer.from(Redacted.value(key)).toString("hex"))),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_SECRET: value })))
  )

describe("a secret", () => {
  it.effect("with a newline after it, as from a file, keeps its key when another joins it", () =>
    Effect.gen(function*() {
      const [key] = yield* keysOf(`${one}\n`)
      assert.strictEqual((yield* keysOf(`${one}\n,${other}`))[0], key)
      assert.include(yield* keysOf(`${other},${one}\n`), key)
    }))

  it.effect("keeps its key when white space around it comes or goes", () =>
    Effect.gen(function*() {
      const [key] = yield* keysOf(one)
      for (const value of [`${one}\n`, ` ${one}`, `${other}, ${one}`, `${other} ,${one}\n`]) {
        assert.include(yield* keysOf(value), key)
      }
    }))

  it.effect("seals under the first of the list only", () =>
    Effect.gen(function*() {
      const [first] = yield* keysOf(`${other}, ${one}`)
      assert.deepStrictEqual([first], yield* keysOf(other))
    }))

  it("is refused if it is too short, wherever it is in the list", () => {
    assert.isTrue(isUsable(`${one},${other}`))
    for (const value of ["", "short", `${one},`, `${one},short`]) assert.isFalse(isUsable(value))
  })
})
