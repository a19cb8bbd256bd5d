/** A process's NATS credentials: errors name the variable, and a seed never appears in them. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import * as Credentials from "../../../shared/nats/Credentials.ts"
import type { Account } from "../../../shared/nats/Storage.ts"

const reading = (environment: Record<string, string>, account: Account = "data") =>
  Credentials.options(account).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(environment))))

const mistakes: ReadonlyArray<readonly [Record<string, string>, string]> = [
  [{ NATS_NKEY_SEED: "SUA-nothing" }, "NATS_NKEY_SEED is not an nkey seed"],
  [{ NATS_CREDS: "/nowhere/user.creds" }, "NATS_CREDS names /nowhere/user.creds, which cannot be read"],
  [{ NATS_CA: "/nowhere/ca.pem" }, "NATS_CA names /nowhere/ca.pem, which cannot be read"],
  [{ NATS_CERT: import.meta.filename }, "NATS_CERT and NATS_KEY must be set together"]
]

describe("credentials", () => {
  it.effect.each(mistakes)("%o: %s", ([environment, message]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(reading(environment))
      assert.strictEqual(error.message, message)
    }))

  it.effect("are empty if no variable is set", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* reading({}), {})
      assert.deepStrictEqual(yield* reading({}, "control"), {})
    }))

  it.effect("of the control account come from its own variables, never from the data account's", () =>
    Effect.gen(function*() {
      const user = { NATS_USER: "ingress", NATS_PASSWORD: "one" }
      const { message } = yield* Effect.flip(reading(user, "control"))
      assert.match(message, /^NATS_CONTROL_USER is missing: NATS_USER is for the data account/)
      const { authenticator } = yield* reading(
        { ...user, NATS_CONTROL_USER: "keys", NATS_CONTROL_PASSWORD: "two" },
        "control"
      )
      assert.deepStrictEqual([authenticator].flat().map((sign) => sign?.()), [{ user: "keys", pass: "two" }])
      const wrong = yield* Effect.flip(reading({ NATS_CONTROL_NKEY_SEED: "SUA-nothing" }, "control"))
      assert.strictEqual(wrong.message, "NATS_CONTROL_NKEY_SEED is not an nkey seed")
    }))

  it.effect("derive one public key from a seed, with or without white space around it", () =>
    Effect.gen(function*() {
      const seed = yield* Credentials.generate
      const key = yield* Credentials.publicKeyOf(seed)
      assert.match(key, /^U[A-Z2-7]{55}$/)
      assert.strictEqual(yield* Credentials.publicKeyOf(Redacted.make(`${Redacted.value(seed)}\n`)), key)
      assert.notInclude(String(seed), Redacted.value(seed))
    }))
})
