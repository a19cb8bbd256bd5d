/** Jobs whose worker or ingress fails: a second attempt if that is safe, else an error. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Queue } from "effect"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import * as Subjects from "../../../shared/bus/protocol/Subjects.ts"
import * as Timings from "../../../shared/bus/protocol/Timings.ts"
import { PoisonJob, WorkerLost } from "../../../shared/contract/JobError.ts"
import { untilJobs, untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { Cable } from "../../fixture/nats/Cable.ts"
import {
  head,
  ingress,
  piece,
  reply,
  untilConnected,
  untilDisconnected,
  worker,
  write
} from "../../fixture/bus/Sides.ts"

// each waits for the protocol's timeouts: concurrently, they wait once
describe.concurrent("a worker that dies", () => {
  it.live("before it claims its job leaves it to another, which asks ingress first", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const pulled = yield* Deferred.make<void>()
      yield* worker(cable.url, { run: () => Effect.andThen(Deferred.succeed(pulled, undefined), Effect.never) })
      const answer = face.submit()
      yield* Deferred.await(pulled)
      cable.cut()
      let attempt = 0
      yield* worker(server.url, {
        run: (job) => {
          attempt = job.pulled.attempt
          return reply(job, { redispatch: "mayHaveBeenSent", pieces: [piece("answer")] })
        }
      })
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "answer")
      assert.deepStrictEqual([attempt, answer.claims, answer.restarts], [2, 1, 0])
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("after its claim is replaced, if the client has nothing yet and a second call is free", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      yield* worker(cable.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim(job.pulled.model === "paid" ? "mayHaveBeenSent" : "idempotent"))
            job.reply.start(head)
            job.reply.write(piece("from the first"))
            return yield* Effect.never
          })
      })
      const free = face.submit({ model: "free" }, { takes: false })
      const paid = face.submit({ model: "paid" }, { takes: false })
      const begun = face.submit({ model: "begun" })
      yield* Effect.forEach([free, paid, begun], (answer) => answer.receivedBytes(1))
      const ran: Array<string> = []
      yield* worker(server.url, {
        run: (job) => {
          ran.push(`${job.pulled.model} ${job.pulled.attempt}`)
          return reply(job, { pieces: [piece("from the second")] })
        }
      })
      cable.cut()
      assert.instanceOf(yield* paid.error, WorkerLost)
      assert.instanceOf(yield* begun.error, WorkerLost)
      yield* free.usage
      assert.strictEqual(free.bytes.toString(), "from the second")
      assert.strictEqual(free.restarts, 1)
      assert.deepStrictEqual(ran, ["free 2"])
    }))

  it.live("twice over the same job is not replaced again", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const answer = face.submit()
      const ran: Array<number> = []
      for (let attempt = 1; attempt <= 2; attempt++) {
        const cable = yield* Cable.make(server.url)
        yield* worker(cable.url, {
          run: (job) =>
            Effect.sync(() => ran.push(job.pulled.attempt)).pipe(
              Effect.andThen(Effect.orDie(job.claim("idempotent"))),
              Effect.andThen(Effect.never)
            )
        })
        yield* answer.claimedTimes(attempt)
        cable.cut()
      }
      yield* worker(server.url, {
        run: (job) =>
          job.claim("idempotent").pipe(
            Effect.andThen(Effect.sync(() => ran.push(job.pulled.attempt))),
            Effect.ignore
          )
      })
      assert.instanceOf(yield* answer.error, PoisonJob)
      assert.strictEqual(answer.restarts, 1)
      // its queued messages are acknowledged without work on them
      yield* Effect.promise(() => untilNoJobs(server))
      assert.deepStrictEqual(ran, [1, 2])
    }))
})

describe.concurrent("a worker that freezes", () => {
  it.live("is replaced, and stops when it wakes: its late frames are ignored", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const interrupted = yield* Deferred.make<void>()
      const frozen = yield* Deferred.make<void>()
      const first = yield* worker(cable.url, {
        slots: 1,
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            job.reply.start(head)
            job.reply.write(piece("before"))
            yield* Deferred.await(frozen)
            job.reply.write(piece("asleep"))
            return yield* Effect.never
          }).pipe(Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined)))
      })
      const answer = face.submit({}, { takes: false })
      yield* answer.receivedBytes("before".length)
      cable.hold()
      yield* Deferred.succeed(frozen, undefined)
      const end = yield* Deferred.make<void>()
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            job.reply.start(head)
            job.reply.write(piece("anew, "))
            yield* Deferred.await(end)
            job.reply.write(piece("to the end"))
            job.reply.end(undefined)
          })
      })
      yield* answer.restarted
      yield* answer.receivedBytes("anew, ".length)
      cable.mend()
      yield* Deferred.await(interrupted)
      yield* Deferred.succeed(end, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "anew, to the end")
      assert.strictEqual(answer.restarts, 1)
      assert.isTrue(first.isReady())
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

describe.concurrent("a paid call whose answer is lost with the connection", () => {
  it.live("is not repeated by its worker when the job is redelivered", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const claimed = yield* Deferred.make<void>()
      const held = yield* Deferred.make<void>()
      let calls = 0
      const only = yield* worker(cable.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            calls++
            yield* Deferred.succeed(claimed, undefined)
            yield* Deferred.await(held)
            job.reply.start(head)
            job.reply.end(undefined)
          })
      })
      const answer = face.submit({})
      yield* Deferred.await(claimed)
      const spoken = cable.holdAt(() => "before")
      yield* Deferred.succeed(held, undefined)
      yield* Effect.promise(() => spoken)
      // the acknowledgement too
      yield* Effect.promise(() => new Promise<void>((resolve) => only.nats.outbox.afterFlush(resolve)))
      cable.cut()
      yield* untilDisconnected(only)
      cable.mend()
      yield* untilConnected(only)
      yield* answer.usage
      yield* Effect.promise(() => untilNoJobs(server))
      assert.strictEqual(calls, 1)
    }))
})

describe.concurrent("an ingress that dies", () => {
  it.live.each(Subjects.versions)(
    "interrupts its jobs in version %s, whether they write or are silent",
    (version) =>
      Effect.gen(function*() {
        const server = yield* NatsServer.make()
        const cable = yield* Cable.make(server.url)
        const face = yield* ingress(cable.url)
        const gone = yield* Deferred.make<void>()
        const began = yield* Queue.unbounded<number>()
        const interrupted = yield* Queue.unbounded<string>()
        yield* worker(server.url, {
          run: (job) =>
            Effect.gen(function*() {
              yield* Effect.orDie(job.claim("mayHaveBeenSent"))
              yield* Queue.offer(began, job.pulled.version)
              yield* Deferred.await(gone)
              if (job.pulled.model === "silent") return yield* Effect.never
              job.reply.start(head)
              for (;;) yield* write(job, Buffer.alloc(1_000))
            }).pipe(Effect.onInterrupt(() => Queue.offer(interrupted, job.pulled.model)))
        })
        // an ingress that knows of a worker of the former version publishes in that version
        if (version === 2) face.nats.connection.publish("slots.chat.default.former", "4")
        // it has received all announcements
        yield* Effect.promise(() => face.nats.connection.flush())
        for (const model of ["silent", "writing"]) face.submit({ model })
        assert.deepStrictEqual(yield* Queue.takeN(began, 2), [version, version])
        cable.cut()
        yield* untilDisconnected(face)
        yield* Deferred.succeed(gone, undefined)
        assert.sameMembers(yield* Queue.takeN(interrupted, 2), ["silent", "writing"])
        yield* Effect.promise(() => untilNoJobs(server))
      })
  )

  it.live("interrupts a job whose worker is fetching its body", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(cable.url)
      const claimed = yield* Deferred.make<void>()
      const gone = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      yield* worker(server.url, {
        run: (job) =>
          Effect.orDie(job.claim("idempotent")).pipe(
            Effect.andThen(Deferred.succeed(claimed, undefined)),
            Effect.andThen(Deferred.await(gone)),
            Effect.andThen(job.body),
            Effect.ignore,
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
      })
      face.submit({ body: Buffer.alloc(Timings.inlineBodyBytes + 1) })
      yield* Deferred.await(claimed)
      cable.cut()
      yield* untilDisconnected(face)
      yield* Deferred.succeed(gone, undefined)
      yield* Deferred.await(interrupted)
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

/** Claims its job, waits, asks to send, and answers with the result. */
const claimAndAskToSend = (job: ServedJob, ready: Deferred.Deferred<void>, send: Deferred.Deferred<void>) =>
  Effect.gen(function*() {
    yield* Effect.orDie(job.claim("unsent"))
    yield* Deferred.succeed(ready, undefined)
    if (job.pulled.attempt === 1) yield* Deferred.await(send)
    const exit = yield* Effect.exit(job.commit)
    if (Exit.isFailure(exit)) return
    job.reply.start(head)
    job.reply.write(piece(`sent at attempt ${job.pulled.attempt}`))
    job.reply.end(undefined)
  })

describe.concurrent("a paid job", () => {
  it.live("that its worker had not sent when it died is sent by another", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const ready = yield* Deferred.make<void>()
      const send = yield* Deferred.make<void>()
      yield* worker(cable.url, { run: (job) => claimAndAskToSend(job, ready, send) })
      const answer = face.submit()
      yield* answer.claimed
      yield* worker(server.url, { run: (job) => claimAndAskToSend(job, ready, send) })
      cable.cut()
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "sent at attempt 2")
    }))

  it.live("is not sent by a worker presumed lost once another has it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const ready = yield* Deferred.make<void>()
      const send = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      let sent = 0
      const run = (job: ServedJob) =>
        claimAndAskToSend(job, ready, send).pipe(
          Effect.andThen(Effect.sync(() => sent++)),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      yield* worker(cable.url, { run, slots: 1 })
      const answer = face.submit()
      yield* answer.claimed
      yield* worker(server.url, { run })
      // it goes on, unaware that it is cut off
      cable.hold()
      yield* answer.restarted
      yield* Deferred.succeed(send, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "sent at attempt 2")
      cable.mend()
      yield* Deferred.await(interrupted)
      assert.strictEqual(sent, 1)
    }))

  it.live("is not sent before ingress agrees: a flushed claim proves nothing", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const ready = yield* Deferred.make<void>()
      const send = yield* Deferred.make<void>()
      const sent: Array<number> = []
      const run = (job: ServedJob) =>
        Effect.andThen(claimAndAskToSend(job, ready, send), Effect.sync(() => sent.push(job.pulled.attempt)))
      yield* worker(cable.url, { run, slots: 1 })
      const answer = face.submit()
      yield* answer.claimed
      // its socket accepts what it writes from here on, but nothing arrives
      cable.hold()
      yield* Deferred.succeed(send, undefined)
      yield* worker(server.url, { run })
      yield* answer.usage
      cable.mend()
      assert.strictEqual(answer.bytes.toString(), "sent at attempt 2")
      assert.deepStrictEqual(sent, [2])
    }))
})

describe.concurrent("a job delivered to a frozen worker that did not claim it", () => {
  it.live("goes to another worker once later jobs overtake it, before its redelivery is due", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const cable = yield* Cable.make(server.url)
      const face = yield* ingress(server.url)
      const ran: Array<string> = []
      const run = (job: ServedJob) =>
        Effect.andThen(
          reply(job),
          Effect.sync(() => job.reply.hasStarted ? ran.push(`${job.pulled.model} ${job.pulled.attempt}`) : undefined)
        )
      const asleep = yield* worker(cable.url, { run, slots: 1 })
      yield* Effect.promise(() => untilJobs(server, ({ pulls }) => pulls > 0))
      cable.hold()
      const swallowed = face.submit({ model: "swallowed" })
      // it goes to the worker whose request is older
      yield* Effect.promise(() => untilJobs(server, ({ unacknowledged }) => unacknowledged === 1))
      yield* worker(server.url, { run })
      yield* face.submit({ model: "later" }).usage
      yield* swallowed.usage
      // redelivery would have made it a first attempt
      assert.deepStrictEqual(ran, ["later 1", "swallowed 2"])
      cable.mend()
      yield* untilConnected(asleep)
      yield* Effect.promise(() => untilNoJobs(server))
      // the sleeper asks about the jobs it finds, and learns that they are over
      assert.deepStrictEqual(ran, ["later 1", "swallowed 2"])
    }))
})
