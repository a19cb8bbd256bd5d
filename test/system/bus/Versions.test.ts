/** Processes of two versions of the protocol side by side, as during an upgrade and a rollback. */
import { jetstream } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/nats-core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { decodeFrame, encodeFrame, type Frame, replyOf } from "../../../shared/bus/protocol/Frame.ts"
import { decodeJob, encodeJob } from "../../../shared/bus/protocol/JobMessage.ts"
import * as Subjects from "../../../shared/bus/protocol/Subjects.ts"
import { provision } from "../../../shared/bus/provision/JobStreams.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { head, type Ingress, ingress, piece, reply, worker } from "../../fixture/bus/Sides.ts"

const end: Frame = { type: "data", sequence: 0, redispatch: "idempotent", head, end: { usage: undefined } }

/** A worker of the former version: reads version 2, and announces its slots without a version, or not at all. */
const formerWorker = Effect.fnUntraced(function*({ nats }: Ingress, isSilent = false) {
  const { connection, outbox } = nats
  yield* provision("chat", "default", 2).pipe(Effect.provideService(Nats, nats), Effect.orDie)
  const jobs = yield* Effect.promise(async () => {
    const consumer = await jetstream(connection).consumers.get(Subjects.jobStream("chat", 2), "default")
    return consumer.consume({ max_messages: 10 })
  })
  const announce = (slots: number) =>
    Effect.promise(() => {
      connection.publish("slots.chat.default.former", `${slots}`)
      return connection.flush()
    })
  const served: Array<string> = []
  const serve = async () => {
    for await (const message of jobs) {
      const job = decodeJob(message as never, 2)
      if (job === undefined) throw new Error("no job of version 2")
      served.push(job.id)
      const control = Subjects.controlSubject("chat", "former", job.id, job.attempt)
      outbox.publish(job.reply, piece("former"), encodeFrame(end), replyOf(control, end))
      message.ack()
    }
  }
  const serving = serve()
  yield* Effect.addFinalizer(() => Effect.promise(() => jobs.close().then(() => serving)))
  if (!isSilent) yield* announce(4)
  return { announce, served }
})

/** The versions in which an ingress publishes, in order. */
const publications = Effect.fnUntraced(function*(connection: NatsConnection) {
  const all = yield* Queue.unbounded<number>()
  connection.subscribe("*.chat.default", {
    callback: (_, message) => void Queue.offerUnsafe(all, message.subject.startsWith("jobs3.") ? 3 : 2)
  })
  yield* Effect.promise(() => connection.flush())
  return all
})

describe("a job of a former ingress", () => {
  it.live("is answered in its version by a worker that prefers a newer one", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { nats: { connection, outbox } } = yield* ingress(server.url)
      yield* worker(server.url, { run: (job) => reply(job, { pieces: [piece("answer")] }) })
      const bytes = yield* Deferred.make<string>()
      connection.subscribe("r.chat.former.job.1", {
        callback: (_, message) => {
          const frame = decodeFrame(message)
          if (frame?.type === "data" && frame.end !== undefined) {
            Deferred.doneUnsafe(bytes, Effect.succeed(message.string()))
          }
        }
      })
      const { headers, payload } = encodeJob(
        {
          version: 2,
          id: "job",
          attempt: 1,
          reply: "r.chat.former.job.1",
          deadline: Number.MAX_SAFE_INTEGER,
          operation: "chat.completions",
          model: "model",
          tenant: "tenant",
          owner: undefined,
          contentType: "application/json",
          headers: undefined,
          traceparent: undefined,
          bodySize: 2,
          isPlain: false
        },
        Buffer.from("{}"),
        "job.1"
      )
      outbox.publish("jobs.chat.default", payload, headers)
      assert.strictEqual(yield* Deferred.await(bytes), "answer")
    }))
})

describe("an ingress", () => {
  it.live("publishes in the newest version that every worker of the pool reads", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const published = yield* publications(face.nats.connection)
      const former = yield* formerWorker(face)
      yield* face.submit().usage
      assert.strictEqual(yield* Queue.take(published), 2)
      yield* worker(server.url, { run: reply })
      yield* face.submit().usage
      assert.strictEqual(yield* Queue.take(published), 2)
      yield* former.announce(0)
      yield* face.submit().usage
      assert.strictEqual(yield* Queue.take(published), 3)
    }))

  it.live("keeps to the newest version while a worker that reads it drains", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const end = yield* Deferred.make<void>()
      const going = yield* worker(server.url, {
        graceMs: 60_000,
        run: (job) =>
          Effect.orDie(job.claim("idempotent")).pipe(Effect.andThen(Deferred.await(end)), Effect.andThen(reply(job)))
      })
      const published = yield* publications(face.nats.connection)
      const last = face.submit()
      yield* last.claimed
      assert.strictEqual(yield* Queue.take(published), 3)
      yield* worker(server.url, { run: reply })
      const closing = yield* Effect.forkChild(going.close)
      yield* Effect.yieldNow
      assert.isFalse(going.isReady())
      const announced = yield* Queue.unbounded<string>()
      face.nats.connection.subscribe(`slots.chat.default.${going.nats.id}.>`, {
        callback: (_, { subject }) => void Queue.offerUnsafe(announced, subject)
      })
      // the first may be from before
      yield* Queue.takeN(announced, 2)
      yield* face.submit().usage
      assert.strictEqual(yield* Queue.take(published), 3)
      yield* Deferred.succeed(end, undefined)
      yield* last.usage
      yield* Fiber.join(closing)
    }))

  it.live("gives unclaimed jobs to former workers if those replace the newer ones", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const published = yield* publications(face.nats.connection)
      const never = yield* Deferred.make<void>()
      yield* worker(server.url, {
        slots: 1,
        run: (job) => Effect.andThen(Effect.orDie(job.claim("idempotent")), Deferred.await(never))
      })
      const stuck = face.submit()
      yield* stuck.claimed
      const waiting = face.submit()
      assert.deepStrictEqual(yield* Queue.takeN(published, 2), [3, 3])
      const former = yield* formerWorker(face)
      yield* waiting.usage
      assert.strictEqual(waiting.bytes.toString(), "former")
      assert.deepStrictEqual(former.served, [waiting.job.id])
      assert.strictEqual(waiting.claims, 1)
      assert.strictEqual(stuck.outcome, undefined)
    }))

  it.live(
    "gives jobs to a former worker that announces nothing, once the newer ones have left",
    () =>
      Effect.gen(function*() {
        const server = yield* NatsServer.make()
        const face = yield* ingress(server.url)
        const newer = yield* worker(server.url, { run: reply })
        yield* face.submit().usage
        const published = yield* publications(face.nats.connection)
        const former = yield* formerWorker(face, true)
        yield* newer.close
        const stranded = face.submit()
        yield* stranded.usage
        const next = face.submit()
        yield* next.usage
        assert.deepStrictEqual(former.served, [stranded.job.id, next.job.id])
        assert.deepStrictEqual(yield* Queue.takeBetween(published, 2, 9).pipe(Effect.map((all) => all.slice(-2))), [
          2,
          2
        ])
      }),
    15_000
  )

  it.live("that starts asks every worker to announce itself", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { nats: { connection } } = yield* ingress(server.url)
      yield* worker(server.url, { run: reply })
      const asked = yield* Queue.unbounded<void>()
      const announced = yield* Queue.unbounded<void>()
      connection.subscribe(Subjects.announceSubject("chat"), {
        callback: () => void Queue.offerUnsafe(asked, undefined)
      })
      connection.subscribe("slots.chat.default.*.3", { callback: () => void Queue.offerUnsafe(announced, undefined) })
      yield* Effect.promise(() => connection.flush())
      yield* ingress(server.url)
      yield* Queue.take(asked)
      // as many announcements as a worker makes by itself within ten seconds
      for (let count = 0; count < 20; count++) {
        yield* Queue.take(announced)
        connection.publish(Subjects.announceSubject("chat"))
      }
    }))
})
