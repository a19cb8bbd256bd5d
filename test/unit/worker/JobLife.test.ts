/** A worker claims a job, performs it, reports its end to ingress and meters it, in this order and for every ending. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { AnswerLost, Cancelled, type JobError } from "../../../shared/contract/JobError.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import * as JobLife from "../../../shared/worker/JobLife.ts"
import { pulled, served } from "./Served.ts"

const usage = { inputTokens: 3, outputTokens: 8 }
const endpoint = { name: "openai", model: "theirs" }

/** Runs the job with this performer. */
const runWith = (
  { job, metering, said }: Pick<ReturnType<typeof served>, "job" | "metering" | "said">,
  perform: (work: JobLife.Work) => Effect.Effect<Usage | undefined, JobError>,
  isIdempotent = false
) =>
  JobLife.runJob({
    ...metering,
    performer: {
      isIdempotent: () => isIdempotent,
      perform: (work) => {
        said.push("perform")
        return perform(work)
      },
      cost: metering.cost,
      costInBatch: metering.cost
    }
  }, job)

/** Calls a provider, then runs the effect. */
const callThen = <A, E>(then: Effect.Effect<A, E>) => (work: JobLife.Work): Effect.Effect<A, E> => {
  work.onCall(endpoint)
  return then
}

describe("a job", () => {
  for (const [isIdempotent, claim] of [[true, "idempotent"], [false, "unsent"]] as const) {
    it.effect(`is claimed as ${claim}, performed, ended and metered`, () =>
      Effect.gen(function*() {
        const life = served()
        yield* runWith(life, callThen(Effect.succeed(usage)), isIdempotent)
        assert.deepStrictEqual(life.said, [`claim ${claim}`, "perform", "end", "event success"])
        assert.deepInclude(life.events[0], { usage, provider: "openai" })
      }))
  }

  it.effect("reaches its performer with everything that ingress sent", () =>
    Effect.gen(function*() {
      const life = served({ pulled: { headers: { "x-one": "1" } } })
      let work: JobLife.Work | undefined
      yield* runWith(life, (given) => {
        work = given
        return Effect.succeed<Usage | undefined>(undefined)
      })
      assert.deepInclude(work, {
        model: "ours",
        tenant: "key_1",
        contentType: "application/json",
        headers: { "x-one": "1" },
        body: pulled.body!,
        deadline: 60_000,
        queuedMs: 4_000,
        commit: life.job.commit
      })
      assert.strictEqual(work?.operation.name, "chat.completions")
    }))

  it.effect("from an ingress whose clock is ahead has waited 0 ms", () =>
    Effect.gen(function*() {
      const life = served({ pulled: { publishedAt: 9_000 } })
      let queuedMs = Number.NaN
      yield* runWith(life, (work) => {
        queuedMs = work.queuedMs
        return Effect.succeed<Usage | undefined>(undefined)
      })
      assert.strictEqual(queuedMs, 0)
    }))

  it.effect("of an unknown operation fails without a performer", () =>
    Effect.gen(function*() {
      const life = served({ pulled: { operation: "of tomorrow" } })
      yield* runWith(life, () => Effect.succeed(usage))
      assert.deepStrictEqual(life.said, ["claim unsent", "fail InvalidRequest"])
    }))

  it.effect("that fails reports its error to ingress, and is metered with its usage so far", () =>
    Effect.gen(function*() {
      const life = served()
      yield* runWith(life, (work) => {
        work.onCall(endpoint)
        work.onCut(usage)
        return Effect.fail(new AnswerLost())
      })
      assert.deepStrictEqual(life.said.slice(2), ["fail AnswerLost", "event failure AnswerLost"])
      assert.deepStrictEqual(life.events[0]!.usage, usage)
    }))

  it.effect("that fails before any call is not metered", () =>
    Effect.gen(function*() {
      const life = served()
      yield* runWith(life, () => Effect.fail(new AnswerLost()))
      assert.deepStrictEqual(life.said.slice(2), ["fail AnswerLost"])
    }))

  it.effect("that dies reports an internal error to ingress, and logs the cause", () =>
    Effect.gen(function*() {
      const life = served()
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
        logged.push(`${logLevel} ${String(Array.isArray(message) ? message[0] : message)}`)
      })
      yield* runWith(life, callThen(Effect.die(new Error("broken")))).pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(life.said.slice(2), ["fail InternalError", "event failure InternalError"])
      assert.deepStrictEqual(logged, ["Error job failed by a bug of the gateway"])
    }))
})

describe("a claim that ingress refuses", () => {
  it.effect("ends the job without a report", () =>
    Effect.gen(function*() {
      const life = served({ refuses: true })
      yield* runWith(life, () => Effect.succeed(usage))
      assert.deepStrictEqual(life.said, ["claim unsent", "abandon"])
    }))

  it.effect("of a redelivered job gives the earlier worker time to meter it, then meters its loss", () =>
    Effect.gen(function*() {
      const delays: Array<number | undefined> = []
      const giveBack = (delayMs?: number) => void delays.push(delayMs)
      const second = served({ refuses: true, pulled: { delivery: 2, giveBack } })
      yield* runWith(second, () => Effect.succeed(usage))
      assert.deepStrictEqual(second.said, ["claim unsent", "abandon"])
      assert.deepStrictEqual(delays, [5_000])
      const moved = served({ refuses: true, isMoved: true, pulled: { delivery: 2, giveBack } })
      yield* runWith(moved, () => Effect.succeed(usage))
      assert.lengthOf(delays, 1)
      const third = served({ refuses: true, pulled: { delivery: 3 } })
      yield* runWith(third, () => Effect.succeed(usage))
      assert.deepStrictEqual(third.said, ["claim unsent", "event failure WorkerLost", "abandon"])
    }))
})

describe("a claim without an answer", () => {
  it.effect("of a redelivered job meters its loss when ingress turns out to be gone", () =>
    Effect.gen(function*() {
      const life = served({ isSilent: true, pulled: { delivery: 3 } })
      const fiber = yield* Effect.forkChild(runWith(life, () => Effect.succeed(usage)), { startImmediately: true })
      life.job.reply.abandon()
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(life.said, ["claim unsent", "abandon", "event failure WorkerLost"])
    }))

  it.effect("of a redelivered job leaves the job in the queue while ingress is not gone", () =>
    Effect.gen(function*() {
      const delays: Array<number | undefined> = []
      const giveBack = (delayMs?: number) => void delays.push(delayMs)
      const life = served({ isGivenUp: true, pulled: { delivery: 3, giveBack } })
      yield* runWith(life, () => Effect.succeed(usage))
      assert.deepStrictEqual(life.said, ["claim unsent", "abandon"])
      assert.deepStrictEqual(delays, [5_000])
    }))

  it.effect("of a redelivered job leaves the job to another worker when this one shuts down", () =>
    Effect.gen(function*() {
      const delays: Array<number | undefined> = []
      const giveBack = (delayMs?: number) => void delays.push(delayMs)
      const life = served({ isSilent: true, pulled: { delivery: 3, giveBack } })
      const fiber = yield* Effect.forkChild(runWith(life, () => Effect.succeed(usage)), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(life.said, ["claim unsent"])
      assert.deepStrictEqual(delays, [undefined])
    }))
})

describe("a job that is cancelled", () => {
  /** A cancelled job is metered only if a call may have been made: after a commitment, or to an idempotent model. */
  for (
    const [committed, isIdempotent, event] of [
      [false, false, []],
      [true, false, ["event cancelled"]],
      [false, true, ["event cancelled"]]
    ] as const
  ) {
    const title = `${committed ? "committed" : "not committed"}, ${isIdempotent ? "idempotent" : "paid"}`

    it.effect(`by its performer: ${title}`, () =>
      Effect.gen(function*() {
        const life = served({ committed })
        yield* runWith(life, callThen(Effect.fail(new Cancelled())), isIdempotent)
        assert.deepStrictEqual(life.said.slice(2), ["abandon", ...event])
      }))

    it.effect(`by ingress: ${title}`, () =>
      Effect.gen(function*() {
        const life = served({ committed })
        const called = yield* Deferred.make<void>()
        const waiting = Effect.andThen(Deferred.succeed(called, undefined), Effect.never)
        const fiber = yield* Effect.forkChild(runWith(life, callThen(waiting), isIdempotent))
        yield* Deferred.await(called)
        life.job.reply.abandon()
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(life.said.slice(2), ["abandon", ...event])
      }))
  }

  it.effect("because its worker shuts down is metered as lost", () =>
    Effect.gen(function*() {
      const life = served()
      const called = yield* Deferred.make<void>()
      const waiting = Effect.andThen(Deferred.succeed(called, undefined), Effect.never)
      const fiber = yield* Effect.forkChild(runWith(life, callThen(waiting)))
      yield* Deferred.await(called)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(life.said.slice(2), ["event failure WorkerLost"])
    }))
})
