/** Jobs over a real server without failures: answers, bodies, flow control, cancellation. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Queue } from "effect"
import { hash, randomFillSync } from "node:crypto"
import type { ServedJob } from "../../../shared/bus/worker/JobServer.ts"
import { frameBytes, inlineBodyBytes, windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { InvalidRequest, ProviderFailed, WorkerLost } from "../../../shared/contract/JobError.ts"
import { untilJobs, untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { head, ingress, reply, stoppableClock, worker, write } from "../../fixture/bus/Sides.ts"

const random = (length: number): Uint8Array => randomFillSync(new Uint8Array(length))
const below = (bound: number): number => Math.floor(Math.random() * bound)

/** Cuts bytes into pieces of random sizes up to `largest`. */
const cut = (bytes: Uint8Array, largest: number): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length;) {
    const size = 1 + below(largest)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

describe("an answer", () => {
  it.live("arrives complete and in order, whatever its size and pieces", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const sizes = [0, 1, frameBytes, frameBytes + 1, windowBytes, windowBytes + 1, 5_000_000, below(5_000_000)]
      const answers = new Map(sizes.map((size, index) => [`${index}`, random(size)]))
      yield* worker(server.url, {
        run: (job) =>
          reply(job, {
            pieces: cut(answers.get(job.pulled.model)!, [50, 3_000, 700_000][below(3)]!),
            usage: { inputTokens: 1, outputTokens: answers.get(job.pulled.model)!.length }
          })
      })
      yield* Effect.forEach(answers, ([model, expected]) =>
        Effect.gen(function*() {
          const answer = face.submit({ model })
          const usage = yield* answer.usage
          assert.isTrue(answer.bytes.equals(expected), `${expected.length} bytes`)
          assert.deepStrictEqual(usage, { inputTokens: 1, outputTokens: expected.length })
          assert.deepStrictEqual([answer.claims, answer.restarts], [1, 0])
          for (const chunk of answer.chunks) assert.isAtMost(chunk.length, frameBytes)
        }), { concurrency: "unbounded" })
    }))

  it.live("has its head, and its worker has the client's request", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const headers = { "x-translation-warnings": "é, \r\n 100%", "x-empty": "" }
      const pulled = yield* Deferred.make<object>()
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Deferred.succeed(pulled, { ...job.pulled, body: Buffer.from(job.pulled.body ?? []).toString() })
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            job.reply.start({ status: 207, contentType: "text/plain; charset=\"utf-8\"", headers })
            job.reply.end(undefined)
          })
      })
      const request = {
        operation: "messages",
        model: "meta/llama 3.1 ",
        tenant: "key_1",
        contentType: "multipart/form-data; boundary=\"é\"",
        headers: { "x-translation": "strict", "x-odd": "é, \r\n 100%" },
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      }
      const answer = face.submit({ ...request, body: Buffer.from("body") })
      assert.isUndefined(yield* answer.usage)
      assert.deepStrictEqual(answer.head, { status: 207, contentType: "text/plain; charset=\"utf-8\"", headers })
      const expected = { ...request, body: "body", bodySize: 4, attempt: 1, delivery: 1, id: answer.job.id }
      assert.deepInclude(yield* Deferred.await(pulled), expected)
    }))

  it.live("may be an error, even after it has started", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const errors = [
        new InvalidRequest({ message: "é\r\n🙂", param: "messages[0]", code: "x" }),
        new ProviderFailed({ provider: "p", reason: "status", status: 503, retryAfterMs: 1.5 })
      ] as const
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            if (job.pulled.model === "1") {
              job.reply.start(head)
              job.reply.write(Buffer.from("begun"))
            }
            job.reply.fail(errors[Number(job.pulled.model)]!)
          })
      })
      for (const [model, error] of errors.entries()) {
        const answer = face.submit({ model: `${model}` })
        assert.deepStrictEqual(yield* answer.error, error)
        assert.strictEqual(answer.bytes.toString(), model === 1 ? "begun" : "")
      }
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("that its worker does not end becomes an error at once", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* worker(server.url, {
        run: (job) =>
          Effect.orDie(job.claim("idempotent")).pipe(
            Effect.andThen(Effect.sync(() => job.reply.start(head))),
            Effect.andThen(job.pulled.model === "dies" ? Effect.die(new Error("a mistake")) : Effect.void)
          )
      })
      for (const model of ["dies", "forgets"]) {
        assert.deepStrictEqual(yield* face.submit({ model }).error, new WorkerLost())
      }
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

describe("the client's pace", () => {
  it.live("stops the worker at the window, and lets it continue when the client does", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const expected = random(5 * windowBytes + 12_345)
      let written = 0
      let ahead = 0
      const paused = yield* Queue.unbounded<number>()
      const answer = face.submit({}, { takes: false })
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            job.reply.start(head)
            for (const piece of cut(expected, frameBytes)) {
              written += piece.length
              ahead = Math.max(ahead, written - answer.taken)
              if (job.reply.write(piece)) continue
              yield* Queue.offer(paused, written)
              yield* Effect.callback<void>((resume) => job.reply.onDrain(() => resume(Effect.void)))
            }
            job.reply.end(undefined)
          })
      })
      while (answer.outcome === undefined) {
        const next = yield* Effect.raceFirst(Queue.take(paused), Effect.as(answer.usage, 0))
        // all that was written arrives, and the worker waits only for the client
        if (next > 0) yield* answer.receivedBytes(next)
        assert.strictEqual(written, Math.max(next, answer.received))
        answer.take()
      }
      assert.isTrue(answer.bytes.equals(expected))
      assert.isAbove(ahead, windowBytes - frameBytes)
      assert.isAtMost(ahead, windowBytes + frameBytes)
    }))
})

describe("a request's body", () => {
  it.live("waits unclaimed if a worker has no room for it, so that another can take it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const begun = yield* Queue.unbounded<string>()
      const goOn = yield* Deferred.make<void>()
      const run = (job: ServedJob) =>
        Effect.gen(function*() {
          yield* job.claim("idempotent")
          yield* Queue.offer(begun, job.pulled.id)
          const { length } = yield* job.body
          yield* Deferred.await(goOn)
          job.reply.start(head)
          job.reply.end({ inputTokens: length, outputTokens: 0 })
        }).pipe(Effect.ignore)
      const settings = { WORKER_BODY_BYTES: String(5 * 1024 * 1024) }
      yield* worker(server.url, { slots: 4, run, settings })
      const large = 2 * 1024 * 1024
      const answers = [...[1, 2, 3].map(() => face.submit({ body: random(large) })), face.submit()]
      const ids = answers.map(({ job }) => job.id)
      // the third has to wait, but the jobs behind it do not
      const first = yield* Effect.all([Queue.take(begun), Queue.take(begun), Queue.take(begun)])
      assert.sameMembers(first, [ids[0], ids[1], ids[3]])
      yield* Effect.forEach(answers.filter(({ job }) => job.id !== ids[2]), ({ claimed }) => claimed)
      assert.deepInclude(face.depth(), { unclaimed: 1, running: 3 })
      // it exceeds all of another worker's room, which accepts it nevertheless
      yield* worker(server.url, { slots: 4, run, settings: { WORKER_BODY_BYTES: "1" } })
      assert.strictEqual(yield* Queue.take(begun), ids[2])
      yield* Deferred.succeed(goOn, undefined)
      const lengths = yield* Effect.forEach(answers, ({ usage }) => Effect.map(usage, (used) => used?.inputTokens))
      assert.deepStrictEqual(lengths, [large, large, large, "{}".length])
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("takes memory even if it comes with its job: more jobs than have room wait in the queue", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const begun = yield* Queue.unbounded<string>()
      const goOn = yield* Deferred.make<void>()
      let running = 0
      let most = 0
      const run = (job: ServedJob) =>
        Effect.gen(function*() {
          yield* job.claim("unsent")
          most = Math.max(most, ++running)
          yield* Queue.offer(begun, job.pulled.id)
          yield* Deferred.await(goOn)
          running--
          job.reply.start(head)
          job.reply.end({ inputTokens: 0, outputTokens: 0 })
        }).pipe(Effect.ignore)
      yield* worker(server.url, { slots: 128, run, settings: { WORKER_BODY_BYTES: "1" } })
      const answers = Array.from({ length: 80 }, () => face.submit({ body: random(512 * 1024) }))
      yield* Queue.takeN(begun, 64)
      yield* Deferred.succeed(goOn, undefined)
      yield* Effect.forEach(answers, ({ usage }) => usage)
      // 32 MiB hold 64 of them, and a quiet queue may deliver one more
      assert.isAtMost(most, 65)
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("reaches the worker complete; the worker fetches a large one, which is not in the queue", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const sizes = [0, 1, inlineBodyBytes, inlineBodyBytes + 1, 5_000_000, 32 * 1024 * 1024]
      const seen = yield* Queue.unbounded<object>()
      yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            const inQueue = job.pulled.body?.length
            const body = yield* Effect.orDie(job.body)
            yield* Queue.offer(seen, { inQueue, length: body.length, hash: hash("sha256", body) })
            job.reply.start(head)
            job.reply.end(undefined)
          })
      })
      for (const size of sizes) {
        const body = random(size)
        const answer = face.submit({ body })
        yield* answer.usage
        assert.deepStrictEqual(yield* Queue.take(seen), {
          inQueue: size <= inlineBodyBytes ? size : undefined,
          length: size,
          hash: hash("sha256", body)
        })
      }
    }))
})

describe("a client that disconnects", () => {
  it.live("while its job runs interrupts it and frees its slot", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const ends = yield* Queue.unbounded<string>()
      yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          job.pulled.model === "last" ? reply(job) : Effect.gen(function*() {
            yield* Effect.orDie(job.claim("mayHaveBeenSent"))
            job.reply.start(head)
            if (job.pulled.model === "writing") {
              for (;;) yield* write(job, Buffer.alloc(frameBytes))
            }
            return yield* Effect.never
          }).pipe(Effect.onExit((exit) => {
            const interrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
            return Queue.offer(ends, `${job.pulled.model} ${interrupted ? "interrupted" : "ended"}`)
          }))
      })
      const silent = face.submit({ model: "silent" })
      yield* silent.claimed
      silent.job.cancel()
      assert.strictEqual(yield* Queue.take(ends), "silent interrupted")
      // at the end of its window, waiting for a client that reads nothing
      const writing = face.submit({ model: "writing" }, { takes: false })
      yield* writing.receivedBytes(windowBytes)
      writing.job.cancel()
      assert.strictEqual(yield* Queue.take(ends), "writing interrupted")
      yield* face.submit({ model: "last" }).usage
      assert.deepStrictEqual([silent.outcome, writing.outcome], [undefined, undefined])
      yield* Effect.promise(() => untilNoJobs(server))
    }))

  it.live("before its job has left ingress leaves no trace of it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, { GATEWAY_WINDOW: "1" })
      const [first, second, third] = ["first", "second", "third"].map((model) => face.submit({ model }))
      assert.deepStrictEqual(face.depth(), { waiting: 2, unclaimed: 1, running: 0 })
      second!.job.cancel()
      assert.deepStrictEqual(face.depth(), { waiting: 1, unclaimed: 1, running: 0 })
      const ran: Array<string> = []
      yield* worker(server.url, {
        run: (job) => Effect.andThen(Effect.sync(() => ran.push(job.pulled.model)), reply(job))
      })
      yield* first!.usage
      yield* third!.usage
      assert.deepStrictEqual(ran, ["first", "third"])
      assert.isUndefined(second!.outcome)
    }))

  it.live("while its job is queued has it rejected: a fresh one at once, an old one before its work", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      // a first worker creates the queue and closes
      const maker = yield* worker(server.url, { run: reply })
      yield* face.submit().usage
      yield* maker.close
      // to this worker the job is fresh, and itself never stalled, even on a busy machine
      const { clock, stop } = yield* stoppableClock
      stop()
      for (const options of [{ clock }, { aheadMs: 2_000 }]) {
        const answer = face.submit()
        yield* Effect.promise(() => untilJobs(server, ({ stored }) => stored === 1))
        answer.job.cancel()
        const began = yield* Deferred.make<boolean>()
        let working = false
        const late = yield* worker(server.url, {
          ...options,
          run: (job) =>
            Effect.gen(function*() {
              yield* Effect.ignore(job.claim("idempotent"))
              if (job.reply.isOver) return
              working = true
              return yield* Effect.never
            }).pipe(Effect.ensuring(Effect.suspend(() => Deferred.succeed(began, working))))
        })
        assert.strictEqual(yield* Deferred.await(began), "clock" in options)
        yield* Effect.promise(() => untilNoJobs(server))
        assert.isUndefined(answer.outcome)
        yield* late.close
      }
    }))
})
