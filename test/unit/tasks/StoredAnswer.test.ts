/** A stored answer refuses to repeat a call that may be billed, and meters only the calls that were made. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ProviderFailed } from "../../../shared/contract/JobError.ts"
import type { Consumed } from "../../../shared/contract/Usage.ts"
import * as StoredAnswer from "../../../shared/tasks/answers/StoredAnswer.ts"
import type { Performer } from "../../../shared/worker/JobLife.ts"
import type { Endpoint } from "../../../shared/worker/Meter.ts"
import { pulled, served } from "../worker/Served.ts"

const paid = { name: "paid", model: "theirs" }
const other = { name: "other", model: "another" }
const usage = { inputTokens: 3, outputTokens: 8 }

/**
 * Answers with this performer. `called` lists the calls that are reported, `committed` those that are recorded, `spent` what was
 * reported as used.
 */
const answerWith = Effect.fnUntraced(function*(perform: Performer["Service"]["perform"]) {
  const { events, metering } = served()
  const called: Array<Endpoint> = []
  const committed: Array<Endpoint> = []
  const spent: Array<Consumed> = []
  let retracted = 0
  const { cost } = metering
  const answers = StoredAnswer.make({
    ...metering,
    performer: { isIdempotent: () => false, perform, cost, costInBatch: cost }
  })
  const answered = yield* Effect.result(answers.answer({
    job: pulled,
    body: new Uint8Array(0),
    claim: {
      refusal: () => undefined,
      isCommitted: () => committed.length > 0,
      commit: (endpoint) => Effect.sync(() => void committed.push(endpoint)),
      retract: Effect.sync(() => void retracted++)
    },
    append: () => Effect.succeed(true),
    spend: (used) => void spent.push(used),
    onCall: (endpoint) => void called.push(endpoint)
  }))
  return { answered, events, called, committed, retracted, spent }
})

describe("a stored answer", () => {
  it.effect("meters no call that it refuses because the one before may be billed", () =>
    Effect.gen(function*() {
      const { answered, called, committed, events } = yield* answerWith((work) =>
        Effect.gen(function*() {
          work.onCall(paid, false)
          yield* work.commit
          work.onCut(usage)
          work.onCall(other, true)
          yield* work.commit
          return usage
        })
      )
      assert.deepInclude(answered, {
        _tag: "Failure",
        failure: new ProviderFailed({ provider: "paid", reason: "unconfirmed", status: null, retryAfterMs: null })
      })
      assert.strictEqual(events.length, 1)
      assert.deepInclude(events[0], { attempts: 1, provider: "paid", providerModel: "theirs", usage, costUsd: 2 })
      assert.notProperty(events[0], "repeatedCalls")
      assert.deepStrictEqual([called, committed], [[paid], [paid]])
    }))

  it.effect("meters a call after one that may be billed if its provider takes calls twice", () =>
    Effect.gen(function*() {
      const { answered, called, events } = yield* answerWith((work, reply) =>
        Effect.gen(function*() {
          work.onCall(paid, false)
          yield* work.commit
          work.onCall(other, true)
          reply.start({ status: 200, contentType: "application/json", headers: {} })
          return yield* Effect.succeed(usage)
        })
      )
      assert.deepInclude(answered, { _tag: "Success" })
      assert.deepInclude(events[0], { attempts: 2, repeatedCalls: 1, provider: "other", usage, outcome: "success" })
      assert.deepStrictEqual(called, [paid, other])
    }))

  it.effect("retracts a call only if it was the only request to the provider", () =>
    Effect.gen(function*() {
      for (const [commits, expected] of [[0, 0], [1, 1], [2, 0]] as const) {
        const { retracted } = yield* answerWith((work) =>
          Effect.gen(function*() {
            // those of an earlier call do not count
            work.onCall(other, false)
            yield* work.commit
            work.onCall(paid, false)
            for (let times = 0; times < commits; times++) yield* work.commit
            yield* work.retract ?? Effect.void
            return usage
          })
        )
        assert.strictEqual(retracted, expected)
      }
    }))

  it.effect("reports its usage in every unit, and until then, that it may have used what was reserved", () =>
    Effect.gen(function*() {
      const searched = { inputTokens: 0, outputTokens: 0, searchUnits: 2 }
      const { spent } = yield* answerWith((work, reply) =>
        Effect.sync(() => {
          work.onCall(paid, false)
          reply.start({ status: 200, contentType: "application/json", headers: {} })
          return searched
        })
      )
      assert.deepStrictEqual(spent, [undefined, searched])
    }))

  it.effect("meters the last call with what it had used before it was cut", () =>
    Effect.gen(function*() {
      const { events } = yield* answerWith((work) =>
        Effect.suspend(() => {
          work.onCall(other, false)
          work.onCut(usage)
          return Effect.fail(ProviderFailed.malformed("other"))
        })
      )
      assert.deepInclude(events[0], { attempts: 1, provider: "other", usage, error: "ProviderFailed" })
    }))
})
