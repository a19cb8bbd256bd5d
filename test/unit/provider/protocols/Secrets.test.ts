/** Resolution of a provider's key. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Layer, Logger, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import * as Endpoint from "../../../../shared/provider/transport/Endpoint.ts"
import { Secrets } from "../../../../shared/provider/transport/Secrets.ts"
import { secretsIn } from "../../../fixture/ProviderKey.ts"

const resolve = (reference: string) => Effect.flatMap(Secrets, ({ resolve }) => resolve(reference))

const valueOf = (reference: string) =>
  Effect.map(resolve(reference), (secret) => Option.getOrUndefined(Option.map(secret, Redacted.value)))

it.effect("a secret has the value of its variable", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* valueOf("${KEY}"), "a")
    assert.strictEqual(yield* valueOf("${EMPTY}"), undefined)
    assert.strictEqual(yield* valueOf("${OTHER}"), undefined)
    assert.strictEqual(yield* valueOf("${PATH}"), undefined)
  }).pipe(Effect.provide(secretsIn({ KEY: "a", KEY_OF_ANOTHER: "b", EMPTY: "" }))))

it.effect("a text that is not a reference is not a secret", () =>
  Effect.gen(function*() {
    for (const text of ["sk-1", "KEY", "$KEY", "${KEY} ", "Bearer ${KEY}", "${}", "${file:}"]) {
      assert.strictEqual(yield* valueOf(text), undefined, text)
    }
  }).pipe(Effect.provide(secretsIn({ KEY: "a" }))))

it.effect("a secret is always redacted", () =>
  Effect.gen(function*() {
    const first = yield* resolve("${KEY}")
    assert.strictEqual(first, yield* resolve("${KEY}"))
    for (const shown of [inspect(yield* Secrets, { depth: 9 }), inspect(first, { depth: 9 }), JSON.stringify(first)]) {
      assert.notInclude(shown, "plaintext")
    }
  }).pipe(Effect.provide(secretsIn({ KEY: "plaintext" }))))

it.effect("a key that is missing is logged once, by its name in the catalogue", () =>
  Effect.gen(function*() {
    const provider: Provider = { protocol: "openai", apiKey: "${NOWHERE}" }
    const logged: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      logged.push(`${logLevel} ${String(message)}`)
    })
    const secrets = yield* Secrets
    const call = Effect.flip(Endpoint.keyOf({ name: "paid", provider, model: "m" }, secrets))
    const errors = yield* Effect.all([call, call]).pipe(Effect.provide(Logger.layer([logger])))
    for (const error of errors) {
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "credentials" })
      assert.match(error.message, /^The gateway has no credentials for the provider 'paid'/)
    }
    assert.deepStrictEqual(logged, ["Error providers.paid in the catalogue needs ${NOWHERE}, which has no value here"])
  }).pipe(Effect.provide(secretsIn({}))))

it.effect("two workers in one process have separate secrets", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* Effect.provide(valueOf("${KEY}"), secretsIn({ KEY: "a" })), "a")
    assert.strictEqual(yield* Effect.provide(valueOf("${KEY}"), secretsIn({ KEY: "b" })), "b")
    assert.strictEqual(yield* Effect.provide(valueOf("${KEY}"), secretsIn({})), undefined)
  }))

/** A file system with one file, and the number of times it was read. */
const oneFile = () => {
  const state = { content: undefined as string | undefined, reads: 0 }
  const layer = Secrets.layer.pipe(
    Layer.provide([
      ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} })),
      Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          readFileString: (path: string) => {
            state.reads++
            return state.content === undefined
              ? fs.readFileString(`${path}-is-not-there`)
              : Effect.succeed(state.content)
          }
        }))
      ).pipe(Layer.provide(NodeFileSystem.layer))
    ])
  )
  return { state, layer }
}

it.effect("a secret in a file is read again after ten seconds, and ends with the file", () => {
  const { layer, state } = oneFile()
  return Effect.gen(function*() {
    const secret = "${file:/run/secrets/key}"
    assert.strictEqual(yield* valueOf(secret), undefined)
    yield* TestClock.adjust("10 seconds")
    state.content = "first\n"
    assert.strictEqual(yield* valueOf(secret), "first")
    state.content = "second\n"
    assert.strictEqual(yield* valueOf(secret), "first")
    assert.strictEqual(state.reads, 2)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* valueOf(secret), "second")
    state.content = undefined
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* valueOf(secret), undefined)
  }).pipe(Effect.provide(layer))
})
