/** A worker that closes finishes its jobs, takes no more, and leaves nothing to wait for. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import { WorkerLost } from "../../../shared/contract/JobError.ts"
import { untilJobs, untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { Cable } from "../../fixture/nats/Cable.ts"
import { clockWithin, head, ingress, reply, worker } from "../../fixture/bus/Sides.ts"

it.live("a closing worker finishes its jobs and leaves the others to other workers", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const face = yield* ingress(server.url)
    const end = yield* Deferred.make<void>()
    const ran: Array<string> = []
    const going = yield* worker(server.url, {
      slots: 2,
      graceMs: 60_000,
      run: (job) =>
        Effect.gen(function*() {
          ran.push(job.pulled.model)
          yield* Effect.orDie(job.claim("mayHaveBeenSent"))
          job.reply.start(head)
          yield* Deferred.await(end)
          job.reply.write(Buffer.from("whole"))
          job.reply.end(undefined)
        })
    })
    const running = [face.submit({ model: "1" }), face.submit({ model: "2" })]
    yield* Effect.forEach(running, (answer) => answer.claimed)
    const waiting = ["3", "4"].map((model) => face.submit({ model }))
    yield* Effect.promise(() => untilJobs(server, ({ stored }) => stored === 3))
    const closing = yield* Effect.forkChild(going.close)
    yield* Effect.yieldNow
    assert.isFalse(going.isReady())
    yield* worker(server.url, { run: reply })
    yield* Effect.forEach(waiting, (answer) => answer.usage)
    assert.isUndefined(closing.pollUnsafe())
    assert.deepStrictEqual(running.map(({ outcome }) => outcome), [undefined, undefined])
    yield* Deferred.succeed(end, undefined)
    yield* Fiber.join(closing)
    for (const answer of running) {
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "whole")
    }
    assert.sameMembers(ran, ["1", "2"])
    yield* Effect.promise(() => untilNoJobs(server))
  }))

it.live("a worker that closes at its busiest loses no job and runs none twice", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const face = yield* ingress(server.url)
    const work = (job: ServedJob) => Effect.andThen(Effect.promise(() => new Promise(setImmediate)), reply(job))
    const answers = Array.from({ length: 300 }, () => face.submit())
    yield* worker(server.url, { slots: 4, run: work })
    for (let turn = 0; turn < 4; turn++) {
      const going = yield* worker(server.url, { slots: 64, graceMs: 60_000, run: work })
      const seen = answers.filter(({ outcome }) => outcome !== undefined).length
      yield* answers[Math.min(seen + 20, answers.length - 1)]!.usage
      yield* going.close
    }
    yield* Effect.forEach(answers, (answer) => answer.usage)
    for (const answer of answers) assert.deepStrictEqual([answer.claims, answer.restarts], [1, 0])
    yield* Effect.promise(() => untilNoJobs(server))
  }))

it.live("a worker that closes ends unfinished jobs after its grace, and another repeats those it may", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const face = yield* ingress(server.url)
    const interrupted: Array<string> = []
    const going = yield* worker(server.url, {
      graceMs: 50,
      run: (job) =>
        Effect.orDie(job.claim(job.pulled.model === "paid" ? "mayHaveBeenSent" : "idempotent")).pipe(
          Effect.andThen(Effect.sync(() => {
            job.reply.start(head)
            job.reply.write(Buffer.from("begun"))
          })),
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Effect.sync(() => interrupted.push(job.pulled.model)))
        )
    })
    const free = face.submit({ model: "free" }, { takes: false })
    const paid = face.submit({ model: "paid" }, { takes: false })
    const begun = face.submit({ model: "begun" })
    yield* Effect.forEach([free, paid, begun], (answer) => answer.receivedBytes(1))
    yield* worker(server.url, { run: (job) => reply(job, { pieces: [Buffer.from(`${job.pulled.attempt}`)] }) })
    yield* going.close
    assert.sameMembers(interrupted, ["free", "paid", "begun"])
    assert.instanceOf(yield* paid.error, WorkerLost)
    assert.instanceOf(yield* begun.error, WorkerLost)
    yield* free.usage
    assert.strictEqual(free.bytes.toString(), "2")
    yield* Effect.promise(() => untilNoJobs(server))
  }))

it.live("a closing worker asks again for a body that was lost on its way", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const cable = yield* Cable.make(server.url)
    const face = yield* ingress(cable.url)
    const closed = yield* Deferred.make<void>()
    const going = yield* worker(server.url, {
      graceMs: 60_000,
      run: (job) =>
        Effect.gen(function*() {
          yield* Effect.orDie(job.claim("idempotent"))
          yield* Deferred.await(closed)
          const body = yield* Effect.orDie(job.body)
          job.reply.start(head)
          job.reply.write(Buffer.from(`${body.length} bytes`))
          job.reply.end(undefined)
        })
    })
    const answer = face.submit({ body: Buffer.alloc(1_000_000) })
    yield* answer.claimed
    const closing = yield* Effect.forkChild(going.close)
    yield* Effect.yieldNow
    const sent = cable.holdAt((command) => /^H?PUB in\./.test(command) ? "before" : undefined)
    yield* Deferred.succeed(closed, undefined)
    yield* Effect.promise(() => sent)
    cable.cut()
    cable.mend()
    yield* answer.usage
    assert.strictEqual(answer.bytes.toString(), "1000000 bytes")
    yield* Fiber.join(closing)
  }))

it.live("a worker closes without long waits while the server is away", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const cable = yield* Cable.make(server.url)
    const face = yield* ingress(server.url)
    const away = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<void>()
    const going = yield* worker(cable.url, {
      clock: yield* clockWithin(2_000),
      graceMs: 60_000,
      run: (job) =>
        Effect.orDie(job.claim("idempotent")).pipe(
          Effect.andThen(Deferred.await(away)),
          Effect.andThen(Effect.sync(() => job.reply.end(undefined))),
          Effect.andThen(Deferred.succeed(ended, undefined))
        )
    })
    const answer = face.submit()
    yield* answer.claimed
    cable.cut()
    const closing = yield* Effect.forkChild(going.close)
    yield* Deferred.succeed(away, undefined)
    yield* Fiber.join(closing)
    assert.isTrue(Deferred.isDoneUnsafe(ended))
  }))

it.live("a worker closes while the server is frozen, before its client notices that", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const going = yield* worker(server.url, { clock: yield* clockWithin(2_000), run: reply })
    server.freeze()
    yield* going.close
    assert.isTrue(going.nats.isConnected())
    server.thaw()
  }))
