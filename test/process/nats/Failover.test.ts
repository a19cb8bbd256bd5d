/**
 * One of several servers dies and its clients reconnect to another. Meanwhile they have no subscriptions, which must not be
 * taken for their death.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Clock, Deferred, Effect, Schedule } from "effect"
import { vi } from "vitest"
import { Cable } from "../../fixture/nats/Cable.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { ingressGoneAfterMs } from "../../../shared/bus/protocol/Timings.ts"
import {
  head,
  ingress,
  passableClock,
  piece,
  type Side,
  stoppableClock,
  untilConnected,
  untilDisconnected,
  worker
} from "../../fixture/bus/Sides.ts"

/** Waits until a side has published on a matching subject, and has received the server's reply to it. */
const untilSaid = (side: Side, subject: RegExp) => {
  const publish = vi.spyOn(side.nats.outbox, "publish")
  const publishNow = vi.spyOn(side.nats.outbox, "publishNow")
  const hasSaid = () => [...publish.mock.calls, ...publishNow.mock.calls].some(([to]) => subject.test(to))
  return Effect.sync(hasSaid).pipe(
    Effect.repeat({ until: (found) => found, schedule: Schedule.spaced("2 millis") }),
    Effect.andThen(Effect.promise(() => new Promise<void>((resolve) => side.nats.outbox.afterFlush(resolve)))),
    Effect.andThen(Effect.promise(() => side.nats.connection.flush())),
    Effect.ensuring(Effect.sync(() => {
      publish.mockRestore()
      publishNow.mockRestore()
    }))
  )
}

/** A worker that answers in two pieces, the second on demand. */
const startHaltingWorker = Effect.fnUntraced(function*(url: string, ownClock?: Clock.Clock) {
  const rest = yield* Deferred.make<void>()
  const interrupted = yield* Deferred.make<void>()
  const { clock, stop } = yield* stoppableClock
  const side = yield* worker(url, {
    clock: ownClock ?? clock,
    run: (job) =>
      Effect.gen(function*() {
        yield* Effect.orDie(job.claim("mayHaveBeenSent"))
        job.reply.start(head)
        job.reply.write(piece("one, "))
        yield* Deferred.await(rest)
        job.reply.write(piece("two"))
        job.reply.end(undefined)
      }).pipe(Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined)))
  })
  return { side, rest, interrupted, stop }
})

describe.concurrent("a move to another server", () => {
  it.live("of a worker loses none of its answers", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const { clock, stop } = yield* stoppableClock
      const face = yield* ingress(server.url, {}, clock)
      const { rest, side } = yield* startHaltingWorker(cable.url)
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      cable.cut()
      yield* untilDisconnected(side)
      yield* untilSaid(face, /^ctl\.chat\.\w+\.-\.0$/)
      stop()
      cable.mend()
      yield* untilConnected(side)
      yield* Deferred.succeed(rest, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))

  it.live("of an ingress loses no answer that sends nothing meanwhile", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const { rest, side, stop } = yield* startHaltingWorker(server.url)
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      cable.cut()
      yield* untilDisconnected(face)
      yield* untilSaid(side, /^r\.chat\./)
      stop()
      cable.mend()
      yield* untilConnected(face)
      yield* Deferred.succeed(rest, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))

  it.live("of an ingress that misses a whole paid answer causes no second call, and gets the answer later", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const begun = yield* Deferred.make<void>()
      const isCut = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      let sent = 0
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            sent++
            yield* Deferred.succeed(begun, undefined)
            yield* Deferred.await(isCut)
            job.reply.start(head)
            job.reply.write(piece("paid for"))
            job.reply.end(undefined)
            yield* Deferred.succeed(ended, undefined)
          })
      })
      const answer = face.submit()
      yield* Deferred.await(begun)
      cable.cut()
      yield* untilDisconnected(face)
      yield* Deferred.succeed(isCut, undefined)
      yield* Deferred.await(ended)
      cable.mend()
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "paid for")
      assert.strictEqual(sent, 1)
    }))

  it.live("of an ingress delays its consent to a paid call, which is then made once", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const isCut = yield* Deferred.make<void>()
      let sent = 0
      const side = yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("unsent"))
            yield* Deferred.await(isCut)
            yield* Effect.orDie(Effect.all([job.commit, job.commit], { concurrency: 2 }))
            yield* Effect.orDie(job.commit)
            sent++
            job.reply.start(head)
            job.reply.end(undefined)
          })
      })
      const answer = face.submit()
      yield* answer.claimed
      cable.cut()
      yield* untilDisconnected(face)
      const asked = untilSaid(side, /^r\.chat\./)
      yield* Deferred.succeed(isCut, undefined)
      yield* asked
      assert.strictEqual(sent, 0)
      cable.mend()
      yield* answer.usage
      assert.deepStrictEqual([sent, answer.claims], [1, 1])
    }))

  it.live("that takes too long ends the work", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const { clock, pass } = yield* passableClock
      const { interrupted, side } = yield* startHaltingWorker(server.url, clock)
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      cable.cut()
      // the worker asks for the ingress, and hears that it is away
      yield* untilSaid(side, /^r\.chat\./)
      yield* pass(ingressGoneAfterMs)
      yield* Deferred.await(interrupted)
    }))
})
