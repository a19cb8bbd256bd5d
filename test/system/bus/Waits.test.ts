/** Jobs that wait for a provider leave their slots to others, over a real server. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import type { JobReply } from "../../../shared/bus/worker/JobReply.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { head, ingress, reply, worker } from "../../fixture/bus/Sides.ts"

/** A worker whose jobs for the model `slow` wait for the provider `beta` until `released` is done. */
const waiting = Effect.fnUntraced(function*(url: string, slots: number) {
  const released = yield* Deferred.make<void>()
  const holding = yield* Deferred.make<void>()
  yield* worker(url, {
    slots,
    run: (job: ServedJob<JobReply>) =>
      Effect.gen(function*() {
        yield* job.claim("unsent")
        if (job.pulled.model === "slow") {
          const onEnd = job.onWait("beta")
          yield* Deferred.await(released).pipe(Effect.ensuring(Effect.sync(onEnd)))
          // it has its slot again, and goes on
          yield* Deferred.await(holding)
        }
        job.reply.start(head)
        job.reply.end(undefined)
      }).pipe(Effect.catch(() => Effect.sync(() => job.reply.abandon())))
  })
  return { released, holding }
})

describe("jobs that wait for a provider", () => {
  it.live("hold no slots: others run meanwhile, and they end when they may go on", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const { holding, released } = yield* waiting(server.url, 8)
      const slow = Array.from({ length: 20 }, () => face.submit({ model: "slow" }))
      yield* Effect.forEach(slow, (answer) => answer.waits("beta"), { concurrency: "unbounded" })
      const quick = Array.from({ length: 20 }, () => face.submit({ model: "quick" }))
      yield* Effect.forEach(quick, (answer) => answer.usage, { concurrency: "unbounded" })
      yield* Deferred.succeed(released, undefined)
      yield* Effect.forEach(slow, (answer) => answer.waits(undefined), { concurrency: "unbounded" })
      yield* Deferred.succeed(holding, undefined)
      yield* Effect.forEach(slow, (answer) => answer.usage, { concurrency: "unbounded" })
      for (const { claims, restarts } of slow) assert.deepStrictEqual([claims, restarts], [1, 0])
    }))

  it.live("are cancelled as all others", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* waiting(server.url, 1)
      const slow = face.submit({ model: "slow" })
      yield* slow.waits("beta")
      slow.job.cancel()
      for (let times = 0; times < 3; times++) yield* face.submit({ model: "quick" }).usage
      assert.strictEqual(face.depth().running, 0)
    }))

  it.live("that end their wait in a moment tell ingress nothing", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* worker(server.url, {
        run: (job) => {
          job.onWait("beta")()
          return reply(job)
        }
      })
      const answer = face.submit()
      yield* answer.usage
      assert.isFalse(answer.hasWaited)
    }))
})
