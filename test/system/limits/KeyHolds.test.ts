/** Ingress processes hold units of keys' limits for the work of tasks, until it ends or its worker is lost. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Exit, Fiber, Latch, Layer, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { LimitReached } from "../../../shared/bounds/Limit.ts"
import { admitSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { BudgetSpent, type JobError } from "../../../shared/contract/JobError.ts"
import type { Consumed } from "../../../shared/contract/Usage.ts"
import * as HoldDesk from "../../../shared/limits/HoldDesk.ts"
import { decodeQuestion, encodeQuestion, renewMs, silentMs, type Work } from "../../../shared/limits/HoldMessage.ts"
import { Holds } from "../../../shared/limits/Holds.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { eventually, hungAfterMs } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** Waits until the condition holds, on the real clock. */
const until = (holds: () => boolean) => Effect.promise(() => eventually(holds, (isSo) => isSo))

const work = (task: string, tokens = 100): Work => ({ task, key: "key_1", model: "any", tokens })

const usage = { inputTokens: 12, outputTokens: 0, searchUnits: 1 }

/** An ingress whose keys allow one work at a time. */
class Ingress {
  readonly taken: Array<Work> = []
  readonly settled: Array<readonly [task: string, used: Consumed]> = []
  refusal: JobError | undefined
  #inUse = false

  readonly take = (work: Work) =>
    Effect.suspend((): Effect.Effect<HoldDesk.SettleWork, JobError | LimitReached> => {
      if (this.refusal !== undefined) return Effect.fail(this.refusal)
      if (this.#inUse) return Effect.fail({ _tag: "LimitReached", retryAfterMs: 7 })
      this.#inUse = true
      this.taken.push(work)
      return Effect.succeed((used: Consumed) => {
        this.#inUse = false
        this.settled.push([work.task, used])
      })
    })
}

const withServer = <A, E>(test: (server: NatsServer) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(NatsServer.make(), test))

const connect = ({ url }: NatsServer) =>
  Effect.map(
    Layer.build(Layer.fresh(Nats.layer)).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url })))
    ),
    (context) => Context.get(context, Nats)
  )

const startIngress = Effect.fnUntraced(function*(server: NatsServer) {
  const ingress = new Ingress()
  const nats = yield* connect(server)
  yield* Effect.provideService(HoldDesk.serve(ingress.take), Nats, nats)
  const asked: Array<string> = []
  nats.connection.subscribe(admitSubject("chat", nats.id), {
    callback: (_, message) => void asked.push(Option.getOrThrow(decodeQuestion(message.string())).ask)
  })
  yield* Effect.promise(() => nats.connection.flush())
  return { ingress, asked, nats, id: nats.id }
})

const startWorker = Effect.fnUntraced(function*(server: NatsServer) {
  const nats = yield* connect(server)
  const holds = yield* Layer.build(Holds.layer("chat")).pipe(Effect.provideService(Nats, nats))
  return { nats, around: Context.get(holds, Holds).around }
})

/**
 * Waits until the worker renews its hold, and so knows that its work is held. Between two renewals, a question can reach the ingress
 * and its answer the worker: otherwise the hold would expire on a busy machine.
 */
const untilRenewed = (asked: ReadonlyArray<string>, ingress: Nats["Service"], worker: Nats["Service"]) => {
  const arrive = Effect.forEach(
    [worker, ingress, ingress, worker],
    ({ connection }) => Effect.promise(() => connection.flush()),
    { discard: true }
  )
  return TestClock.adjust(renewMs).pipe(Effect.andThen(arrive), Effect.repeat({ until: () => asked.includes("renew") }))
}

describe("the work of a task", () => {
  it.effect("begins when an ingress holds its units, and returns them at its end", () =>
    withServer((server) =>
      Effect.gen(function*() {
        const { ingress } = yield* startIngress(server)
        const { around } = yield* startWorker(server)
        const end = yield* Latch.make()
        const first = yield* Effect.forkChild(
          around(
            work("a"),
            (spend) => Effect.as(end.await, "done").pipe(Effect.tap(() => Effect.sync(() => spend(usage))))
          )
        )
        yield* until(() => ingress.taken.length === 1)
        const refused = yield* Effect.flip(around(work("b"), () => Effect.die("must not run")))
        assert.deepInclude(refused as object, { _tag: "NotNow", retryAfterMs: 7 })
        yield* end.open
        assert.strictEqual(yield* Fiber.join(first), "done")
        yield* until(() => ingress.settled.length === 1)
        yield* around(work("c"), (spend) => Effect.sync(() => spend(undefined)))
        yield* around(work("d"), () => Effect.void)
        yield* until(() => ingress.settled.length === 3)
        assert.deepStrictEqual(ingress.settled, [["a", usage], ["c", undefined], ["d", "nothing"]])
      })
    ))

  it.effect("fails with the error for which its key may not do it, and waits if no ingress answers", () =>
    withServer((server) =>
      Effect.gen(function*() {
        const { around } = yield* startWorker(server)
        const alone = yield* Effect.flip(around(work("a"), () => Effect.die("must not run")))
        assert.deepInclude(alone as object, { _tag: "NotNow" })
        const { ingress } = yield* startIngress(server)
        ingress.refusal = new BudgetSpent({ budgetUsd: 3, retryAfterMs: 1_000 })
        const refused = yield* Effect.flip(around(work("a"), () => Effect.die("must not run")))
        assert.deepStrictEqual(refused, ingress.refusal)
      })
    ))

  it.effect("goes on when its ingress is gone, and another one holds what it still needs", () =>
    withServer((server) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const { ingress: gone } = yield* Scope.provide(startIngress(server), scope)
        const { around, nats: worker } = yield* startWorker(server)
        const end = yield* Latch.make()
        const begun = yield* Latch.make()
        const running = yield* Effect.forkChild(around(work("a"), () => Effect.andThen(begun.open, end.await)))
        yield* begun.await
        assert.lengthOf(gone.taken, 1)
        yield* Scope.close(scope, Exit.void)
        const { asked, ingress: next, nats } = yield* startIngress(server)
        yield* TestClock.adjust(renewMs)
        yield* until(() => next.taken.length === 1)
        assert.deepStrictEqual(next.taken, [{ ...work("a"), isHoldLost: true }])
        yield* untilRenewed(asked, nats, worker)
        yield* end.open
        yield* Fiber.join(running)
        yield* until(() => next.settled.length === 1)
      })
    ))

  it.effect("goes on without an ingress if it has begun, and is held as soon as there is one", () =>
    withServer((server) =>
      Effect.gen(function*() {
        const { around, nats: worker } = yield* startWorker(server)
        const end = yield* Latch.make()
        const begun = yield* Latch.make()
        const running = yield* Effect.forkChild(around(
          { ...work("a", 0), seconds: 5 },
          (spend) => Effect.andThen(begun.open, end.await).pipe(Effect.andThen(Effect.sync(() => spend(undefined)))),
          true
        ))
        yield* begun.await
        const { asked, ingress, nats } = yield* startIngress(server)
        yield* untilRenewed(asked, nats, worker)
        assert.deepStrictEqual(ingress.taken, [{ ...work("a", 0), seconds: 5, isHoldLost: true }])
        yield* end.open
        yield* Fiber.join(running)
        yield* until(() => ingress.settled.length === 1)
        assert.deepStrictEqual(ingress.settled, [["a", undefined]])
      })
    ))

  it.effect("holds its units while its worker renews them", () =>
    withServer((server) =>
      Effect.gen(function*() {
        const { id, ingress } = yield* startIngress(server)
        const { around, nats } = yield* startWorker(server)
        const ask = (question: Parameters<typeof encodeQuestion>[0]) =>
          Effect.promise(async () =>
            (await nats.connection.request(admitSubject("chat", id), encodeQuestion(question), {
              timeout: hungAfterMs
            }))
              .json()
          )
        assert.deepStrictEqual(yield* ask({ ask: "take", work: work("lost") }), { answer: "held" })
        // the next worker of a task has the units of the one before
        assert.deepStrictEqual(yield* ask({ ask: "take", work: work("lost") }), { answer: "held" })
        yield* TestClock.adjust(silentMs - 1)
        assert.deepStrictEqual(yield* ask({ ask: "renew", task: "lost" }), { answer: "held" })
        yield* TestClock.adjust(silentMs - 1)
        assert.isEmpty(ingress.settled)
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(ingress.settled, [["lost", undefined]])
        assert.deepStrictEqual(yield* ask({ ask: "renew", task: "lost" }), { answer: "unknown" })
        yield* around(work("next"), () => Effect.void)
        assert.lengthOf(ingress.taken, 2)
      })
    ))
})
