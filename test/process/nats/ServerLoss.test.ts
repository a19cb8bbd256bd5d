/** Jobs whose server is killed and restarts with empty memory: they continue if they can, and none hangs. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import { pingAfterMs, pongWithinMs, windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { Cable } from "../../fixture/nats/Cable.ts"
import {
  head,
  ingress,
  passableClock,
  piece,
  reply,
  untilConnected,
  untilDisconnected,
  worker
} from "../../fixture/bus/Sides.ts"

/** Answers in two pieces, the second once `goOn` is done. */
const answerInTwo = (goOn: Deferred.Deferred<void>) => (job: ServedJob) =>
  Effect.gen(function*() {
    yield* Effect.orDie(job.claim("mayHaveBeenSent"))
    job.reply.start(head)
    job.reply.write(piece("one, "))
    yield* Deferred.await(goOn)
    job.reply.write(piece("two"))
    job.reply.end(undefined)
  })

// each waits for the protocol's timeouts: concurrently, they wait once
describe.concurrent("a server that is killed and restarts empty", () => {
  it.live("loses no job: ingress publishes again, workers pull again", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const gate = yield* Deferred.make<void>()
      const ran: Array<string> = []
      const side = yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          Effect.gen(function*() {
            ran.push(job.pulled.model)
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            yield* Deferred.await(gate)
            job.reply.start(head)
            job.reply.write(piece(job.pulled.model))
            job.reply.end(undefined)
          })
      })
      const running = face.submit({ model: "0" })
      yield* running.claimed
      const confirmations = face.nats.connection.subscribe("*.chat.default", { max: 2 })
      const before = ["1", "2", "3", "4"].map((model) => face.submit({ model }))
      assert.deepStrictEqual(face.depth(), { waiting: 3, unclaimed: 1, running: 1 })
      // the one in the stream is confirmed, so that nothing more is published about it
      yield* Effect.promise(() => Array.fromAsync(confirmations))
      yield* Effect.promise(() => face.nats.connection.flush())
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      const during = ["5", "6"].map((model) => face.submit({ model }))
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(face, side)
      yield* Deferred.succeed(gate, undefined)
      for (const [index, answer] of [running, ...before, ...during].entries()) {
        yield* answer.usage
        assert.strictEqual(answer.bytes.toString(), `${index}`)
        assert.deepStrictEqual([answer.claims, answer.restarts], [1, 0])
      }
      assert.deepStrictEqual(ran.toSorted(), ["0", "1", "2", "3", "4", "5", "6"])
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("gets what was published while it was away", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const side = yield* worker(server.url, { run: (job) => reply(job, { pieces: [piece("answer")] }) })
      yield* face.submit().usage
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      const answer = face.submit()
      assert.deepStrictEqual(face.depth(), { waiting: 1, unclaimed: 0, running: 0 })
      yield* Effect.promise(() => server.restart())
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "answer")
    }))

  it.live("delays an answer only while it is away", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const away = yield* Deferred.make<void>()
      const back = yield* Deferred.make<void>()
      const side = yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim(job.pulled.model === "paid" ? "mayHaveBeenSent" : "idempotent"))
            job.reply.start(head)
            job.reply.write(piece("one, "))
            if (job.pulled.attempt === 1) yield* Deferred.await(away)
            job.reply.write(piece("two, "))
            if (job.pulled.attempt === 1) yield* Deferred.await(back)
            job.reply.write(piece("three"))
            job.reply.end(undefined)
          })
      })
      const answers = [
        face.submit({ model: "free" }, { takes: false }),
        face.submit({ model: "paid" }, { takes: false }),
        face.submit({ model: "begun" })
      ]
      yield* Effect.forEach(answers, (answer) => answer.receivedBytes("one, ".length))
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      yield* Deferred.succeed(away, undefined)
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(face, side)
      yield* Deferred.succeed(back, undefined)
      for (const answer of answers) {
        yield* answer.usage
        assert.strictEqual(answer.bytes.toString(), "one, two, three")
        assert.strictEqual(answer.restarts, 0)
      }
    }))

  it.live("before a paid job's claim has arrived does not cause a second call", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const begun = yield* Deferred.make<void>()
      const away = yield* Deferred.make<void>()
      const ran: Array<string> = []
      const run = (job: ServedJob) =>
        Effect.gen(function*() {
          // ingress receives nothing from the first claim on; afterwards, both workers may ask for the job
          if (yield* Deferred.succeed(begun, undefined)) cable.hold()
          yield* Effect.orDie(job.claim("mayHaveBeenSent"))
          ran.push(job.pulled.id)
          yield* Deferred.await(away)
          job.reply.start(head)
          job.reply.write(piece("once"))
          job.reply.end(undefined)
        })
      const sides = [yield* worker(server.url, { run, slots: 1 }), yield* worker(server.url, { run, slots: 1 })]
      const answer = face.submit()
      yield* Deferred.await(begun)
      cable.cut()
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, ...sides)
      assert.deepStrictEqual(face.depth(), { waiting: 0, unclaimed: 1, running: 0 })
      cable.mend()
      yield* Effect.promise(() => server.restart())
      yield* answer.claimed
      yield* Deferred.succeed(away, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "once")
      assert.deepStrictEqual(ran, [answer.job.id])
    }))

  it.live("does not end work whose ingress merely reconnects later", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const alone = yield* Deferred.make<void>()
      const back = yield* Deferred.make<void>()
      const said = yield* Deferred.make<void>()
      const side = yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            job.reply.start(head)
            job.reply.write(piece("one, "))
            yield* Deferred.await(alone)
            // without a subscriber, and harmless
            job.reply.claim("mayHaveBeenSent")
            yield* Deferred.succeed(said, undefined)
            yield* Deferred.await(back)
            job.reply.write(piece("two"))
            job.reply.end(undefined)
          })
      })
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      yield* Effect.promise(() => server.kill())
      cable.cut()
      yield* untilDisconnected(face, side)
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(side)
      yield* Deferred.succeed(alone, undefined)
      yield* Deferred.await(said)
      // the server's reply to that has arrived before its reply to this
      yield* Effect.promise(() => new Promise<void>((resolve) => side.nats.outbox.afterFlush(resolve)))
      yield* Effect.promise(() => side.nats.connection.flush())
      cable.mend()
      yield* untilConnected(face)
      yield* Deferred.succeed(back, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))

  it.live("leaves an answer complete if none of it was in flight", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const back = yield* Deferred.make<void>()
      const side = yield* worker(server.url, { run: answerInTwo(back) })
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(face, side)
      yield* Deferred.succeed(back, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))

  it.live("does not stall an answer although it lost the client's credit", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const side = yield* worker(server.url, {
        run: (job) => reply(job, { pieces: Array.from({ length: 40 }, () => Buffer.alloc(windowBytes / 16)) })
      })
      const answer = face.submit({}, { takes: false })
      yield* answer.receivedBytes(windowBytes)
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      answer.take()
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(face, side)
      yield* answer.receivedBytes(2 * windowBytes)
      answer.take()
      yield* answer.usage
      assert.strictEqual(answer.received, 40 * windowBytes / 16)
    }))

  it.live("does not lose the end of an answer", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const away = yield* Deferred.make<void>()
      const side = yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim(job.pulled.model === "paid" ? "mayHaveBeenSent" : "idempotent"))
            if (job.pulled.attempt === 1) yield* Deferred.await(away)
            job.reply.start(head)
            job.reply.end({ inputTokens: 0, outputTokens: job.pulled.attempt })
          })
      })
      const [free, paid] = [face.submit({ model: "free" }), face.submit({ model: "paid" })]
      yield* Effect.forEach([free, paid], (answer) => answer.claimed)
      yield* Effect.promise(() => server.kill())
      yield* untilDisconnected(face, side)
      yield* Deferred.succeed(away, undefined)
      yield* Effect.promise(() => server.restart())
      assert.deepStrictEqual(yield* paid.usage, { inputTokens: 0, outputTokens: 1 })
      assert.deepStrictEqual(yield* free.usage, { inputTokens: 0, outputTokens: 1 })
    }))
})

describe("a server that freezes", () => {
  it.live("for longer than a worker may be silent loses no answer", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { clock, pass } = yield* passableClock
      const face = yield* ingress(server.url, {}, clock)
      const goOn = yield* Deferred.make<void>()
      yield* worker(server.url, { clock, run: answerInTwo(goOn) })
      const answer = face.submit()
      yield* answer.receivedBytes("one, ".length)
      server.freeze()
      yield* pass(2 * (pingAfterMs + pongWithinMs))
      server.thaw()
      yield* Deferred.succeed(goOn, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))
})
