/** The queue over a real server: slots, fairness, bounds, deadlines, and JetStream's view of it. */
import { DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { assert, describe, it } from "@effect/vitest"
import type { Msg } from "@nats-io/nats-core"
import { Clock, Deferred, Effect, Fiber, Queue } from "effect"
import { randomBytes } from "node:crypto"
import { queueCounts } from "../../../shared/bus/provision/QueueState.ts"
import type { ServeOptions } from "../../../shared/bus/worker/JobServer.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { encodeHeaders } from "../../../shared/nats/Outbox.ts"
import { QueueFull, QueueTimeout, Unavailable } from "../../../shared/contract/JobError.ts"
import { untilJobs, untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { head, ingress, reply, worker } from "../../fixture/bus/Sides.ts"

/** Asks JetStream how many messages the default pool has. */
const consumerOf = Effect.fnUntraced(function*(server: NatsServer) {
  const { nats } = yield* ingress(server.url)
  const ask = queueCounts("chat", "default").pipe(
    Effect.map((counts) => ({ waiting: counts?.pending, unacknowledged: counts?.ackPending })),
    Effect.provideService(Nats, nats)
  )
  return { ask }
})

describe("slots", () => {
  it.live("limit the number of running jobs, and only free ones pull", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const started = yield* Queue.unbounded<void>()
      const gate = yield* Queue.unbounded<void>()
      let running = 0
      const side = yield* worker(server.url, {
        slots: 3,
        run: (job) =>
          Effect.gen(function*() {
            running++
            assert.isAtMost(running, 3)
            yield* Queue.offer(started, undefined)
            yield* Queue.take(gate)
            running--
            yield* reply(job)
          })
      })
      const consumer = yield* consumerOf(server)
      // as many as ingress publishes before it knows how fast they are taken
      const jobs = 8
      const answers = Array.from({ length: jobs }, () => face.submit())
      yield* Queue.takeN(started, 3)
      for (let begun = 3; begun < jobs; begun++) {
        // all are published by now: jobs that the worker does not have are in the queue, for any free slot
        if (begun > 3) assert.deepStrictEqual(yield* consumer.ask, { waiting: jobs - begun, unacknowledged: 3 })
        else yield* Effect.promise(() => untilJobs(server, ({ stored }) => stored === jobs))
        yield* Queue.offer(gate, undefined)
        yield* Queue.take(started)
      }
      yield* Queue.offerAll(gate, [undefined, undefined, undefined])
      yield* Effect.forEach(answers, (answer) => answer.usage)
      assert.isTrue(side.isReady())
    }))

  it.live("of several workers share the queue: an idle worker does not wait for a busy one", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const never = yield* Deferred.make<void>()
      const counts = { stuck: 0, free: 0 }
      yield* worker(server.url, {
        slots: 2,
        run: (job) =>
          Effect.gen(function*() {
            counts.stuck++
            yield* Effect.orDie(job.claim("idempotent"))
            yield* Deferred.await(never)
          })
      })
      const stuck = [face.submit(), face.submit()]
      yield* Effect.forEach(stuck, (answer) => answer.claimed)
      yield* worker(server.url, {
        slots: 2,
        run: (job) => Effect.andThen(Effect.sync(() => counts.free++), reply(job))
      })
      yield* Effect.forEach(Array.from({ length: 50 }, () => face.submit()), (answer) => answer.usage)
      assert.deepStrictEqual(counts, { stuck: 2, free: 50 })
    }))

  it.live("survive a job from another version of the gateway", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* worker(server.url, { slots: 1, run: reply })
      const foreign = [
        encodeHeaders({ "Gw-V": "1", "Gw-Job": "x", "Gw-Deadline": 0 }),
        encodeHeaders({ "Gw-Job": "99 x many r 0 op %zz t text/plain   0" }),
        encodeHeaders({ "Gw-Job": `2 x many r 0 op m t text/plain   0` }),
        undefined
      ]
      for (const headers of foreign) face.nats.outbox.publish("jobs.chat.default", randomBytes(10), headers)
      for (const payload of ["3 x many r 0 op m t text/plain   0   any\n", "3", ""]) {
        face.nats.outbox.publish("jobs3.chat.default", Buffer.from(payload))
      }
      yield* face.submit().usage
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

describe("a job that is delivered twice", () => {
  it.live("runs once, whichever worker receives it again", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const end = yield* Deferred.make<void>()
      const refused = yield* Deferred.make<void>()
      const ran: Array<string> = []
      const work = (name: string): ServeOptions["run"] => (job) =>
        Effect.gen(function*() {
          ran.push(name)
          yield* Effect.orDie(job.claim("idempotent"))
          job.reply.start(head)
          job.reply.write(Buffer.from(name))
          yield* Deferred.await(end)
          job.reply.end(undefined)
        }).pipe(Effect.onInterrupt(() => Deferred.succeed(refused, undefined)))
      const copy = yield* Effect.callback<Msg>((resume) => {
        face.nats.connection.subscribe("*.chat.default", {
          max: 1,
          callback: (_, message) => resume(Effect.succeed(message))
        })
        return Effect.void
      }).pipe(Effect.forkChild({ startImmediately: true }))
      yield* worker(server.url, { run: work("first") })
      const answer = face.submit()
      yield* answer.receivedBytes("first".length)
      const message = yield* Fiber.join(copy)
      // without the message id, so that JetStream takes it for another message
      const headers = encodeHeaders({})
      const manager = yield* Effect.promise(() => jetstreamManager(face.nats.connection))
      const stream = yield* Effect.promise(() => manager.streams.find(message.subject))
      let published = 1
      /** Publishes the job again, and returns once a worker has the copy. */
      const again = Effect.suspend(() => {
        published++
        face.nats.outbox.publish(message.subject, message.data, headers)
        return Effect.promise(() => manager.consumers.info(stream, "default")).pipe(
          Effect.repeat({ until: ({ delivered }) => delivered.stream_seq === published })
        )
      })
      yield* again
      assert.deepStrictEqual(ran, ["first"])
      // another worker may start it, but is stopped at its first frame
      yield* worker(server.url, { slots: 20, run: work("second") })
      while (!ran.includes("second")) yield* again
      yield* Deferred.await(refused)
      // a worker may only acknowledge what no other one has
      assert.strictEqual((yield* Effect.promise(() => manager.streams.info(stream))).state.messages, published)
      yield* Deferred.succeed(end, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "first")
      assert.strictEqual(answer.claims, 1)
      assert.deepStrictEqual(ran.filter((name) => name === "first"), ["first"])
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

describe("the queue", () => {
  it.live("holds a job until its work has ended, so that its length is the demand", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const end = yield* Deferred.make<void>()
      yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            job.reply.start(head)
            yield* Deferred.await(end)
            job.reply.end(undefined)
          })
      })
      const consumer = yield* consumerOf(server)
      const [first, second] = [face.submit(), face.submit()]
      yield* first.claimed
      yield* Effect.promise(() => untilJobs(server, ({ stored }) => stored === 2))
      assert.deepStrictEqual(yield* consumer.ask, { waiting: 1, unacknowledged: 1 })
      assert.deepStrictEqual(face.depth(), { waiting: 0, unclaimed: 1, running: 1 })
      yield* Deferred.succeed(end, undefined)
      yield* first.usage
      yield* second.usage
      yield* Effect.promise(() => untilNoJobs(server))
      assert.deepStrictEqual(yield* consumer.ask, { waiting: 0, unacknowledged: 0 })
      assert.deepStrictEqual(face.depth(), { waiting: 0, unclaimed: 0, running: 0 })
    }))

  it.live("of one pool is separate from that of another", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, { GATEWAY_WINDOW: "2" })
      const end = yield* Deferred.make<void>()
      yield* worker(server.url, { run: reply })
      yield* worker(server.url, {
        pool: "slow",
        slots: 1,
        run: (job) =>
          Effect.orDie(job.claim("idempotent")).pipe(Effect.andThen(Deferred.await(end)), Effect.andThen(reply(job)))
      })
      const slow = Array.from({ length: 5 }, () => face.submit({ pool: "slow" }))
      yield* slow[0]!.claimed
      yield* Effect.forEach(Array.from({ length: 10 }, () => face.submit()), (answer) => answer.usage)
      assert.deepStrictEqual(face.depth("slow"), { waiting: 2, unclaimed: 2, running: 1 })
      assert.deepStrictEqual(face.depth("default"), { waiting: 0, unclaimed: 0, running: 0 })
      yield* Deferred.succeed(end, undefined)
      yield* Effect.forEach(slow, (answer) => answer.usage)
    }))

  it.live("lets a quiet tenant overtake a noisy one", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, { GATEWAY_WINDOW: "2" })
      const order: Array<string> = []
      const gate = yield* Deferred.make<void>()
      yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          Deferred.await(gate).pipe(
            Effect.andThen(Effect.sync(() => order.push(job.pulled.tenant))),
            Effect.andThen(reply(job))
          )
      })
      const noisy = Array.from({ length: 30 }, () => face.submit({ tenant: "noisy" }))
      const quiet = ["one", "two", "three"].map((tenant) => face.submit({ tenant }))
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.forEach([...noisy, ...quiet], (answer) => answer.usage, { concurrency: "unbounded" })
      for (const tenant of ["one", "two", "three"]) {
        // behind the two in the window and one turn of each tenant
        assert.isAtMost(order.indexOf(tenant), 2 + 4, order.join(" "))
      }
    }))

  it.live("delivers a job that was published before the queue existed", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const answer = face.submit()
      // the server has it, but no subscriber
      yield* Effect.promise(() => new Promise<void>((resolve) => face.nats.outbox.afterFlush(resolve)))
      yield* Effect.promise(() => face.nats.connection.flush())
      yield* worker(server.url, { run: reply })
      yield* answer.usage
      assert.strictEqual(answer.claims, 1)
      yield* Effect.promise(() => untilNoJobs(server))
    }))
})

describe("a full queue", () => {
  it.live("at ingress rejects jobs at once, and accepts them again once one has left", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, {
        GATEWAY_WINDOW: "1",
        GATEWAY_QUEUE_LIMIT: "2",
        GATEWAY_TENANT_QUEUE_LIMIT: "2"
      })
      const accepted = [face.submit(), face.submit(), face.submit()]
      const refused = [face.submit({ tenant: "a" }), face.submit({ tenant: "b" })]
      for (const answer of refused) {
        const error = yield* answer.error
        assert.instanceOf(error, QueueFull)
        assert.isAbove(error.retryAfterMs, 0)
        // a rejected job can be cancelled like any other
        answer.job.cancel()
      }
      assert.deepStrictEqual(face.depth(), { waiting: 2, unclaimed: 1, running: 0 })
      accepted[1]!.job.cancel()
      const next = face.submit()
      yield* worker(server.url, { run: reply })
      yield* Effect.forEach([accepted[0]!, accepted[2]!, next], (answer) => answer.usage)
    }))

  it.live("in JetStream rejects only the jobs that do not fit", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* Effect.promise(async () => {
        const manager = await jetstreamManager(face.nats.connection)
        await manager.streams.add({
          name: "JOBS_CHAT",
          subjects: ["jobs.chat.>"],
          retention: RetentionPolicy.Workqueue,
          storage: StorageType.Memory,
          discard: DiscardPolicy.New,
          max_msgs: 3
        })
      })
      const answers = Array.from({ length: 5 }, () => face.submit())
      for (const answer of answers.slice(3)) assert.instanceOf(yield* answer.error, QueueFull)
      yield* worker(server.url, { run: reply })
      yield* Effect.forEach(answers.slice(0, 3), (answer) => answer.usage)
    }))
})

describe("an ingress that shuts down", () => {
  it.live("fails waiting and running jobs, notifies its workers, and publishes nothing more", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, { GATEWAY_WINDOW: "1" })
      const interrupted = yield* Deferred.make<void>()
      let began = 0
      yield* worker(server.url, {
        slots: 1,
        run: (job) =>
          Effect.suspend(() => {
            began++
            return Effect.orDie(job.claim("idempotent"))
          }).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
      })
      const running = face.submit()
      yield* running.claimed
      const waiting = Array.from({ length: 10 }, () => face.submit())
      yield* Effect.promise(() => untilJobs(server, ({ stored }) => stored === 2))
      yield* face.close
      for (const answer of [running, ...waiting]) assert.instanceOf(yield* answer.error, Unavailable)
      yield* Deferred.await(interrupted)
      yield* Effect.promise(() => untilNoJobs(server))
      assert.isAtMost(began, 2)
      assert.instanceOf(yield* face.submit().error, Unavailable)
    }))
})

describe("a job's deadline", () => {
  const inMs = (ms: number) => Effect.map(Clock.currentTimeMillis, (now) => now + ms)

  it.live("ends it if no worker takes it, before or after it left ingress, and no worker starts it later", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url, { GATEWAY_WINDOW: "1" })
      const maker = yield* worker(server.url, { run: reply })
      yield* face.submit().usage
      yield* maker.close
      const deadline = yield* inMs(500)
      const answers = [face.submit({ deadline }), face.submit({ deadline })]
      for (const answer of answers) {
        const error = yield* answer.error
        assert.instanceOf(error, QueueTimeout)
        assert.isAbove(error.retryAfterMs, 0)
        assert.isAtLeast(yield* inMs(1), deadline)
      }
      assert.deepStrictEqual(face.depth(), { waiting: 0, unclaimed: 0, running: 0 })
      let ran = 0
      yield* worker(server.url, {
        run: (job) =>
          job.claim("idempotent").pipe(
            Effect.andThen(Effect.sync(() => ran++)),
            Effect.andThen(reply(job)),
            Effect.ignore
          )
      })
      yield* Effect.promise(() => untilNoJobs(server))
      assert.strictEqual(ran, 0)
    }))

  it.live("ends it if its queue does not exist", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const answer = face.submit({ pool: "nobody", deadline: yield* inMs(400) })
      assert.instanceOf(yield* answer.error, QueueTimeout)
    }))

  it.live("does not end it once a worker has claimed it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const late = yield* Deferred.make<void>()
      yield* worker(server.url, { run: (job) => Effect.andThen(reply(job, {}), Effect.void) })
      yield* face.submit().usage
      yield* worker(server.url, {
        pool: "slow",
        run: (job) =>
          Effect.gen(function*() {
            yield* Effect.orDie(job.claim("idempotent"))
            yield* Deferred.await(late)
            job.reply.start(head)
            job.reply.end(undefined)
          })
      })
      // long enough for the claim on a busy machine
      const deadline = yield* inMs(5_000)
      const slow = face.submit({ pool: "slow", deadline })
      const other = face.submit({ pool: "nobody", deadline })
      yield* slow.claimed
      // the same tick of the same clock ends the other
      assert.instanceOf(yield* other.error, QueueTimeout)
      yield* Deferred.succeed(late, undefined)
      yield* slow.usage
    }))
})
