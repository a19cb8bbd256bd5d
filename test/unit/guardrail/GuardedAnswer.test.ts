/** An answer that is held back goes on, however large its events are. */
import { assert, it } from "@effect/vitest"
import { Effect, Latch } from "effect"
import { GuardedAnswer } from "../../../shared/guardrail/GuardedAnswer.ts"

const frameOf = (type: string, fields: object): string => `data: ${JSON.stringify({ type, ...fields })}\n\n`

/** Fills a window, and then an event without text that alone is more than may be held. */
const frames = [
  frameOf("response.output_text.delta", { delta: "enough text for a window" }),
  frameOf("response.in_progress", { response: { object: "response", instructions: "x".repeat(300_000) } })
]

it.effect("a stream goes on if an event without text fills the memory while a window is checked", () =>
  Effect.gen(function*() {
    let passed = ""
    const answer = {
      hasStarted: true,
      start: () => {},
      write: (bytes: Uint8Array) => (passed += Buffer.from(bytes).toString()) !== "",
      onDrain: (resume: () => void) => resume()
    }
    const guarded = new GuardedAnswer(answer, "responses", { characters: 10, overlap: 0 })
    guarded.start({ status: 200, contentType: "text/event-stream", headers: {} })
    const checked = yield* Latch.make()
    yield* guarded.next.pipe(
      Effect.tap(() => checked.await),
      Effect.flatMap(guarded.release),
      Effect.forever,
      Effect.forkChild
    )
    const mayContinue = frames.map((frame) => guarded.write(Buffer.from(frame)))
    assert.deepStrictEqual(mayContinue, [true, false])
    let isResumed = false
    guarded.onDrain(() => {
      isResumed = true
    })
    yield* checked.open
    for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
    assert.isTrue(isResumed)
    assert.strictEqual(passed, frames.join(""))
  }))
