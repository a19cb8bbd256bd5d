/** The paid parts of an answer are metered if it fails or is interrupted, and only then. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import * as PaidParts from "../../../../shared/provider/call/PaidParts.ts"

/** Makes two paid parts and a part whose usage is unknown, and then the rest. Returns what is metered. */
const cutOf = Effect.fnUntraced(function*(rest: Effect.Effect<void, string>) {
  const cut: Array<Usage> = []
  const made = PaidParts.metered({ onCut: (usage) => cut.push(usage) }, (paid) => {
    paid({ inputTokens: 7, outputTokens: 0, images: 1 })
    paid(undefined)
    paid({ inputTokens: 1, outputTokens: 2 })
    return rest
  })
  const fiber = yield* Effect.forkChild(Effect.exit(made), { startImmediately: true })
  yield* Fiber.interrupt(fiber)
  return cut
})

it.effect("paid parts are metered if the answer fails or is interrupted", () =>
  Effect.gen(function*() {
    const sum = { inputTokens: 8, outputTokens: 2, images: 1 }
    assert.deepStrictEqual(yield* cutOf(Effect.fail("no store")), [sum])
    assert.deepStrictEqual(yield* cutOf(Effect.never), [sum])
    assert.deepStrictEqual(yield* cutOf(Effect.void), [])
  }))

it.effect("an answer without paid parts is not metered", () =>
  Effect.gen(function*() {
    const cut: Array<Usage> = []
    const to = { onCut: (usage: Usage) => cut.push(usage) }
    yield* Effect.flip(PaidParts.after(to, undefined, Effect.fail("no store")))
    assert.deepStrictEqual(cut, [])
  }))
