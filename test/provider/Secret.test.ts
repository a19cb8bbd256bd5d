/** Where a provider's key comes from. */
import { assert, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Secret from "../../shared/provider/Secret.ts"

const valueOf = (text: string, environment: NodeJS.ProcessEnv = {}) =>
  Effect.map(Secret.resolve(text, environment), (secret) => Option.getOrUndefined(Option.map(secret, Redacted.value)))

it.effect("a secret is what a variable holds, or the text itself", () =>
  Effect.gen(function*() {
    assert.strictEqual(yield* valueOf("${KEY}", { KEY: "a" }), "a")
    assert.strictEqual(yield* valueOf("${KEY}", { KEY: "" }), undefined)
    assert.strictEqual(yield* valueOf("${KEY}"), undefined)
    assert.strictEqual(yield* valueOf("sk-1"), "sk-1")
  }))

it.effect("a secret in a file is read again, and is gone with the file", () =>
  Effect.gen(function*() {
    const folder = mkdtempSync(join(tmpdir(), "secret-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const file = join(folder, "key")
    const secret = `\${file:${file}}`
    assert.strictEqual(yield* valueOf(secret), undefined)
    yield* TestClock.adjust("10 seconds")
    writeFileSync(file, "first\n")
    assert.strictEqual(yield* valueOf(secret), "first")
    writeFileSync(file, "second\n")
    assert.strictEqual(yield* valueOf(secret), "first")
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* valueOf(secret), "second")
    rmSync(file)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* valueOf(secret), undefined)
  }))
