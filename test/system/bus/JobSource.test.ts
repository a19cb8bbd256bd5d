/** The source pulls as many jobs as there are free slots, and acknowledges each. The test plays the queue. */
import { assert, describe, it } from "@effect/vitest"
import { headers as makeHeaders } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import { Effect, Queue } from "effect"
import type { PulledJob, SourceOptions } from "../../../shared/bus/worker/JobSource.ts"
import { JobSource } from "../../../shared/bus/worker/JobSource.ts"
import { pullSubject, versions } from "../../../shared/bus/protocol/Subjects.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { ingress } from "../../fixture/bus/Sides.ts"

/** A source, and all that it sends to the queue that the test plays. */
const sourceOf = Effect.fnUntraced(function*(
  slots: number,
  now: () => number = () => 0,
  limits: Partial<Pick<SourceOptions, "room" | "slotsNow">> = {}
) {
  const server = yield* NatsServer.make()
  const { nats } = yield* ingress(server.url)
  const queue = yield* Effect.acquireRelease(
    Effect.promise(() => connect({ servers: server.url })),
    (connection) => Effect.promise(() => connection.close())
  )
  /** By version. */
  const requests = {
    2: yield* Queue.unbounded<{ readonly batch: number; readonly inbox: string }>(),
    3: yield* Queue.unbounded<{ readonly batch: number; readonly inbox: string }>()
  }
  const words = yield* Queue.unbounded<string>()
  for (const version of versions) {
    queue.subscribe(pullSubject("chat", "slow", version), {
      callback: (_, message) => {
        const { batch } = message.json<{ readonly batch: number }>()
        Queue.offerUnsafe(requests[version], { batch, inbox: message.reply ?? "" })
      }
    })
  }
  // like JetStream's own subjects, which the server reserves
  queue.subscribe("played.ACK.>", {
    callback: (_, message) => void Queue.offerUnsafe(words, `${message.string()} ${message.subject.split(".")[5]}`)
  })
  yield* Effect.promise(() => queue.flush())
  const jobs = yield* Queue.unbounded<PulledJob>()
  const source = yield* Effect.acquireRelease(
    Effect.sync(() =>
      new JobSource({
        nats,
        queue: "chat",
        pool: "slow",
        slots,
        now,
        ...limits,
        onJob: (job) => Queue.offerUnsafe(jobs, job)
      })
    ),
    (source) => source.stop
  )
  let sequence = 0
  /** Delivers the next job as JetStream does. */
  const deliver = (inbox: string, { connection = queue, delivery = 1, version = 3 } = {}) => {
    sequence++
    const line = `${version} job${sequence} 2 r.chat.x.job${sequence}.2 0 op m t text/plain   4`
    const headers = makeHeaders()
    if (version === 2) headers.set("Gw-Job", line)
    const reply = `played.ACK.JOBS_CHAT.slow.${delivery}.${sequence}.${sequence}.1700000000123456789.0`
    connection.publish(inbox, version === 2 ? "body" : `${line}   any\nbody`, { headers, reply })
  }
  const status = (inbox: string, text: string, pending?: number) => {
    const more = pending === undefined ? "" : `Nats-Pending-Messages: ${pending}\r\n`
    queue.publish(inbox, "", { headers: { encode: () => Buffer.from(`NATS/1.0 ${text}\r\n${more}\r\n`) } as never })
  }
  return { nats, queue, source, requests, pulls: requests[3], words, jobs, deliver, status }
})

const nothingElse = <A>(queue: Queue.Queue<A>) =>
  Effect.gen(function*() {
    assert.deepStrictEqual(yield* Queue.clear(queue), [])
  })

describe("a pull request", () => {
  it.live("asks for the free slots at once, then for each as it becomes free", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source } = yield* sourceOf(5)
      source.start(3)
      const first = yield* Queue.take(pulls)
      assert.strictEqual(first.batch, 5)
      for (let count = 0; count < 3; count++) deliver(first.inbox)
      const [one, two, three] = yield* Queue.takeN(jobs, 3)
      assert.strictEqual(source.inFlight(), 3)
      // two slots are free and already requested
      yield* nothingElse(pulls)
      one!.acknowledge()
      two!.giveBack()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 2)
      three!.acknowledge()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 1)
      yield* nothingElse(pulls)
    }))

  it.live("asks for 256 of many free slots, and for more when half of them have come", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source } = yield* sourceOf(1_280)
      source.start(3)
      const first = yield* Queue.take(pulls)
      assert.strictEqual(first.batch, 256)
      for (let count = 0; count < 127; count++) deliver(first.inbox)
      const early = yield* Queue.takeN(jobs, 127)
      for (const job of early) job.acknowledge()
      deliver(first.inbox)
      yield* Queue.take(jobs)
      source.watch()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 128)
      yield* nothingElse(pulls)
    }))

  it.live("asks for no more jobs than there are slots now, and runs those it has asked for", () =>
    Effect.gen(function*() {
      let now = 8
      const { deliver, jobs, pulls, source, words } = yield* sourceOf(8, () => 0, { slotsNow: () => now })
      source.start(3)
      const { batch, inbox } = yield* Queue.take(pulls)
      assert.deepStrictEqual([batch, source.slots()], [8, 8])
      now = 2
      for (let count = 0; count < 8; count++) deliver(inbox)
      const all = yield* Queue.takeN(jobs, 8)
      assert.deepStrictEqual([source.inFlight(), source.slots()], [8, 2])
      for (const job of all.slice(0, 7)) job.acknowledge()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 1)
      assert.strictEqual((yield* Queue.takeN(words, 7)).filter((word) => word.startsWith("+ACK")).length, 7)
      yield* nothingElse(pulls)
    }))

  it.live("asks for no more jobs than there is memory for", () =>
    Effect.gen(function*() {
      let room = 3
      const { deliver, jobs, pulls, source } = yield* sourceOf(8, () => 0, { room: () => room })
      source.start(3)
      const { batch, inbox } = yield* Queue.take(pulls)
      assert.strictEqual(batch, 3)
      for (let count = 0; count < 3; count++) {
        deliver(inbox)
        room--
      }
      const [job] = yield* Queue.takeN(jobs, 3)
      source.watch()
      yield* nothingElse(pulls)
      room = 1
      job!.acknowledge()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 1)
    }))

  it.live("is repeated for the jobs that the server did not deliver", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source, status } = yield* sourceOf(4)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      deliver(inbox)
      yield* Queue.take(jobs)
      status(inbox, "408 Request Timeout", 3)
      assert.strictEqual((yield* Queue.take(pulls)).batch, 3)
      yield* nothingElse(pulls)
    }))
})

describe("a job", () => {
  it.live("has its headers' values, and is acknowledged once", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      deliver(inbox, { delivery: 3 })
      const job = yield* Queue.take(jobs)
      assert.deepInclude(job, { id: "job1", attempt: 2, delivery: 3, publishedAt: 1_700_000_000_123 })
      job.working()
      assert.strictEqual(yield* Queue.take(words), "+WPI 1")
      job.acknowledge()
      job.giveBack()
      job.acknowledge()
      job.working()
      assert.strictEqual(yield* Queue.take(words), "+ACK 1")
      assert.strictEqual(source.inFlight(), 0)
      deliver(inbox)
      ;(yield* Queue.take(jobs)).giveBack()
      // nothing arrived in between
      assert.strictEqual(yield* Queue.take(words), "-NAK 2")
    }))

  it.live("that waits holds no slot, and takes one again whether one is free or not", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      for (let count = 0; count < 2; count++) deliver(inbox)
      const [one, two] = yield* Queue.takeN(jobs, 2)
      const ends = [one!.park(), two!.park()]
      assert.isUndefined(one!.park())
      assert.strictEqual((yield* Queue.take(pulls)).batch, 2)
      assert.strictEqual(source.inFlight(), 0)
      assert.isTrue(source.isWorking())
      for (const end of ends) end?.()
      ends[0]?.()
      assert.strictEqual(source.inFlight(), 2)
      // those that were requested meanwhile are not returned
      for (let count = 0; count < 2; count++) deliver(inbox)
      const more = yield* Queue.takeN(jobs, 2)
      assert.strictEqual(source.inFlight(), 4)
      one!.acknowledge()
      two!.park()
      two!.acknowledge()
      assert.strictEqual(source.inFlight(), 2)
      yield* nothingElse(pulls)
      for (const job of more) job.acknowledge()
      assert.strictEqual((yield* Queue.take(pulls)).batch, 2)
      assert.strictEqual((yield* Queue.takeN(words, 4)).filter((word) => word.startsWith("+ACK")).length, 4)
    }))

  it.live("keeps its slot while it waits if 256 others wait", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source } = yield* sourceOf(1)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      const ends: Array<(() => void) | undefined> = []
      for (let count = 0; count < 256; count++) {
        deliver(inbox)
        ends.push((yield* Queue.take(jobs)).park())
      }
      deliver(inbox)
      const last = yield* Queue.take(jobs)
      assert.isUndefined(last.park())
      assert.strictEqual(source.inFlight(), 1)
      ends[0]?.()
      assert.isDefined(last.park())
    }))

  it.live("in flight when the source stops is returned to the queue", () =>
    Effect.gen(function*() {
      const { deliver, jobs, nats, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      deliver(inbox)
      const running = yield* Queue.take(jobs)
      // a message on the source's own connection arrives before its subscription ends
      deliver(inbox, { connection: nats.connection })
      yield* source.stop
      assert.strictEqual(yield* Queue.take(words), "-NAK 2")
      running.acknowledge()
      assert.strictEqual(yield* Queue.take(words), "+ACK 1")
      yield* nothingElse(jobs)
      yield* nothingElse(pulls)
    }))

  it.live("of a newer version of the protocol is left to newer workers", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      deliver(inbox, { version: 4 })
      assert.strictEqual(yield* Queue.take(words), "-NAK {\"delay\":1000000000} 1")
      yield* nothingElse(jobs)
    }))
})

describe("the queues of two versions", () => {
  it.live("share the slots: the newer one is asked for all of them, the quiet one for one more", () =>
    Effect.gen(function*() {
      const { deliver, jobs, requests, source } = yield* sourceOf(3)
      assert.strictEqual(source.version, 2)
      source.start(2)
      const older = yield* Queue.take(requests[2])
      assert.strictEqual(older.batch, 1)
      source.start(3)
      const newer = yield* Queue.take(requests[3])
      assert.strictEqual(newer.batch, 3)
      assert.strictEqual(source.version, 3)
      for (let count = 0; count < 3; count++) deliver(newer.inbox)
      const [one, two] = yield* Queue.takeN(jobs, 3)
      deliver(older.inbox, { version: 2 })
      const extra = yield* Queue.take(jobs)
      assert.deepStrictEqual([extra.version, source.inFlight()], [2, 4])
      // the slots are exceeded by one: the first that ends leaves none free
      one!.acknowledge()
      assert.strictEqual(source.inFlight(), 3)
      two!.acknowledge()
      // both have delivered, so each gets a part of what is free
      assert.strictEqual((yield* Queue.take(requests[2])).batch, 1)
      assert.strictEqual((yield* Queue.take(requests[3])).batch, 1)
      yield* nothingElse(requests[2])
      yield* nothingElse(requests[3])
    }))

  it.live("are asked independently, so that one without a leader does not stop the other", () =>
    Effect.gen(function*() {
      let time = 0
      const { deliver, jobs, nats, requests, source, status } = yield* sourceOf(2, () => time)
      source.start(3)
      source.start(2)
      const newer = yield* Queue.take(requests[3])
      const older = yield* Queue.take(requests[2])
      status(newer.inbox, "409 Leadership Change", 2)
      deliver(older.inbox, { version: 2 })
      assert.strictEqual((yield* Queue.take(jobs)).version, 2)
      // of two free places, counting the extra one, the queue without a leader keeps its own
      assert.strictEqual((yield* Queue.take(requests[2])).batch, 1)
      time += 300
      source.watch()
      nats.outbox.flush()
      assert.strictEqual((yield* Queue.take(requests[3])).batch, 1)
      yield* nothingElse(requests[2])
      yield* nothingElse(requests[3])
    }))
})

describe("a single server", () => {
  it.live("is asked for one job, for longer, once it has had none for long", () =>
    Effect.gen(function*() {
      let time = 0
      const { deliver, nats, pulls, source, status } = yield* sourceOf(5, () => time)
      source.start(3)
      const first = yield* Queue.take(pulls)
      assert.strictEqual(first.batch, 5)
      time += 10_500
      status(first.inbox, "408 Request Timeout", 5)
      const quiet = yield* Queue.take(pulls)
      assert.strictEqual(quiet.batch, 1)
      time += 2_000
      source.watch()
      nats.outbox.flush()
      yield* Effect.promise(() => nats.connection.flush())
      yield* nothingElse(pulls)
      // its first job shows that more may come
      deliver(quiet.inbox)
      assert.strictEqual((yield* Queue.take(pulls)).batch, 4)
    }))
})

describe("a server that lost the pull requests", () => {
  it.live("gets new ones after the lost ones would have expired, and not before", () =>
    Effect.gen(function*() {
      let time = 0
      const { deliver, jobs, nats, pulls, source, status } = yield* sourceOf(2, () => time)
      source.start(3)
      const { inbox } = yield* Queue.take(pulls)
      deliver(inbox)
      deliver(inbox)
      const [one] = yield* Queue.takeN(jobs, 2)
      // without pull requests, it has nothing to send
      time += 60_000
      one!.acknowledge()
      assert.deepStrictEqual(yield* Queue.take(pulls), { batch: 1, inbox })
      time += 1_000
      source.watch()
      nats.outbox.flush()
      yield* Effect.promise(() => nats.connection.flush())
      yield* nothingElse(pulls)
      time += 1_000
      source.watch()
      const second = yield* Queue.take(pulls)
      assert.strictEqual(second.batch, 1)
      // soon, until it answers
      time += 250
      source.watch()
      const third = yield* Queue.take(pulls)
      assert.strictEqual(third.batch, 1)
      // if it has not lost them, its answers cause no further requests
      for (const each of [inbox, second.inbox, third.inbox]) status(each, "408 Request Timeout", 1)
      assert.strictEqual((yield* Queue.take(pulls)).batch, 1)
      nats.outbox.flush()
      yield* Effect.promise(() => nats.connection.flush())
      yield* nothingElse(pulls)
    }))

  it.live("may still deliver a job for an old one, which does not count as one of the new", () =>
    Effect.gen(function*() {
      const { deliver, jobs, nats, pulls, queue, source } = yield* sourceOf(2)
      source.start(3)
      const old = yield* Queue.take(pulls)
      source.start(3)
      nats.outbox.flush()
      yield* Effect.promise(() => nats.connection.flush())
      deliver(old.inbox)
      ;(yield* Queue.take(jobs)).acknowledge()
      nats.outbox.flush()
      // the server has sent the requests on, and they have arrived
      yield* Effect.promise(() => nats.connection.flush())
      yield* Effect.promise(() => queue.flush())
      const requests = (yield* Queue.clear(pulls)).filter(({ inbox }) => inbox !== old.inbox)
      assert.strictEqual(requests.reduce((total, { batch }) => total + batch, 0), 2)
    }))

  it.live("gets back what it delivers for old requests and new ones beyond the slots", () =>
    Effect.gen(function*() {
      const { deliver, jobs, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const old = yield* Queue.take(pulls)
      source.start(3)
      const current = yield* Queue.take(pulls)
      for (const { inbox } of [current, current, old, old]) deliver(inbox)
      yield* Queue.takeN(jobs, 3)
      assert.strictEqual(yield* Queue.take(words), "-NAK {\"delay\":250000000} 4")
      assert.strictEqual(source.inFlight(), 3)
    }))

  it.live("delivers nothing for old ones to a worker that stops", () =>
    Effect.gen(function*() {
      const { deliver, pulls, source, words } = yield* sourceOf(2)
      source.start(3)
      const old = yield* Queue.take(pulls)
      source.start(3)
      yield* Queue.take(pulls)
      yield* source.stop
      deliver(old.inbox)
      // the server itself answers, with 503
      assert.strictEqual(yield* Queue.take(words), " 1")
    }))
})
