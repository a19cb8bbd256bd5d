/** Messages between ingress and worker arrive unchanged, and foreign ones are rejected. */
import { assert, describe, it } from "@effect/vitest"
import { connect } from "@nats-io/transport-node"
import { Deferred, Effect, Queue } from "effect"
import { decodeBundle } from "../../../shared/bus/protocol/Bundle.ts"
import type { Claim, Control, Frame } from "../../../shared/bus/protocol/Frame.ts"
import {
  decodeControl,
  decodeFrame,
  encodeControl,
  encodeFrame,
  payloadOf,
  replyOf
} from "../../../shared/bus/protocol/Frame.ts"
import { Outbox } from "../../../shared/nats/Outbox.ts"
import { aboutWorkerSubject, controlSubject, replySubject } from "../../../shared/bus/protocol/Subjects.ts"
import * as JobError from "../../../shared/contract/JobError.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { head, ingress, reply, worker } from "../../fixture/bus/Sides.ts"

/** A third party on the bus: receives the messages to its control subjects. */
const stranger = Effect.fnUntraced(function*(server: NatsServer, id = "stranger") {
  const connection = yield* Effect.acquireRelease(
    Effect.promise(() => connect({ servers: server.url })),
    (connection) => Effect.promise(() => connection.close())
  )
  const outbox = new Outbox(connection, (subject) => assert.fail(`${subject} was refused`))
  const heard = yield* Queue.unbounded<string>()
  connection.subscribe(`ctl.chat.${id}.>`, {
    callback: (_, message) => {
      const job = message.subject.split(".")[3]
      Queue.offerUnsafe(heard, `${decodeControl(message)?.type} ${job}`)
    }
  })
  yield* Effect.promise(() => connection.flush())
  return {
    connection,
    outbox,
    heard,
    send: (subject: string, frame: Frame, about: string, payload?: Uint8Array) =>
      outbox.publish(subject, payload, encodeFrame(frame), replyOf(controlSubject("chat", id, about, 1), frame))
  }
})

const data = (sequence: number, end = false): Frame => ({
  type: "data",
  sequence,
  redispatch: "idempotent",
  head: sequence === 0 ? head : undefined,
  end: end ? { usage: undefined } : undefined
})

describe("a message", () => {
  const usage = { inputTokens: 1, outputTokens: 2, cachedTokens: 0, reasoningTokens: 2 }
  const frames: ReadonlyArray<Frame> = [
    { type: "claim", redispatch: "idempotent" },
    { type: "claim", redispatch: "mayHaveBeenSent" },
    { type: "claims", claims: [{ job: "a", attempt: 1, redispatch: "idempotent", behind: 0 }] },
    {
      type: "claims",
      claims: [
        { job: "a", attempt: 1, redispatch: "mayHaveBeenSent", behind: 12 },
        { job: "b", attempt: 2, redispatch: "idempotent", behind: 11 }
      ]
    },
    { type: "pull", offset: 0, length: 1 },
    { type: "pull", offset: 33_554_431, length: 1_048_576 },
    { type: "heartbeat", sequence: 0 },
    { type: "pong", next: 123 },
    data(0),
    { ...data(0), redispatch: "idempotent", head: { ...head, headers: { "x-é": "\r\n%0A", "": "" } } } as Frame,
    { type: "data", sequence: 7, redispatch: "mayHaveBeenSent", head: undefined, end: undefined },
    { type: "data", sequence: 7, redispatch: "mayHaveBeenSent", head: undefined, end: { usage } },
    { type: "data", sequence: 0, redispatch: "idempotent", head, end: { usage: undefined } },
    ...[
      new JobError.InvalidRequest({ message: "\r\n🙂", param: null, code: "c" }),
      new JobError.ModelNotFound({ model: "m" }),
      new JobError.ModelUnsuitable({ model: "m", workload: "chat", operation: "o" }),
      new JobError.ProviderRejected({ provider: "p", status: 422, message: "", type: null, param: "x", code: null }),
      new JobError.ProviderRateLimited({ provider: "p", retryAfterMs: null }),
      new JobError.ProviderFailed({ provider: "p", reason: "cut", status: null, retryAfterMs: 0 }),
      new JobError.ProviderTimeout({ provider: "p", phase: "first byte" }),
      new JobError.QueueFull({ retryAfterMs: 1 }),
      new JobError.QueueTimeout({ retryAfterMs: 1 }),
      new JobError.WorkerLost(),
      new JobError.PoisonJob(),
      new JobError.AnswerLost(),
      new JobError.Cancelled(),
      new JobError.Unavailable({ retryAfterMs: 1 }),
      new JobError.InternalError()
    ].map((error, sequence): Frame => ({ type: "error", sequence, error }))
  ]
  const controls: ReadonlyArray<Control> = [
    { type: "go", redispatch: "unsent" },
    { type: "go", redispatch: "mayHaveBeenSent" },
    { type: "no", fate: "over" },
    { type: "no", fate: "moved" },
    { type: "no", fate: "taken" },
    { type: "cancel", fate: "over" },
    { type: "cancel", fate: "moved" },
    { type: "ping" },
    { type: "credit", bytes: 123_456_789_012 }
  ]

  it.live("arrives unchanged", () =>
    Effect.gen(function*() {
      const { connection, outbox } = yield* stranger(yield* NatsServer.make())
      const subscription = connection.subscribe("said", { max: frames.length + controls.length })
      for (const frame of frames) {
        const payload = frame.type === "error" || frame.type === "claims" ? payloadOf(frame) : undefined
        outbox.publish("said", payload, encodeFrame(frame), replyOf(controlSubject("chat", "w", "job", 1), frame))
      }
      for (const control of controls) outbox.publish("said", undefined, encodeControl(control))
      const messages = yield* Effect.promise(() => Array.fromAsync(subscription))
      assert.deepStrictEqual(messages.slice(0, frames.length).map(decodeFrame), [...frames])
      assert.deepStrictEqual(messages.slice(frames.length).map(decodeControl), [...controls])
    }))

  it.live("without a subscriber is answered by the server itself", () =>
    Effect.gen(function*() {
      const { connection, outbox } = yield* stranger(yield* NatsServer.make())
      const subscription = connection.subscribe("answers", { max: 1 })
      outbox.publish("nobody", undefined, encodeFrame(data(0)), "answers")
      const [answer] = yield* Effect.promise(() => Array.fromAsync(subscription))
      assert.deepStrictEqual(decodeFrame(answer!), { type: "noResponders" })
      assert.deepStrictEqual(decodeControl(answer!), { type: "noResponders" })
    }))
})

/** A job whose worker has sent a first piece, with the means to forge messages of either side. */
const startStreamingJob = Effect.gen(function*() {
  const server = yield* NatsServer.make()
  const face = yield* ingress(server.url)
  const end = yield* Deferred.make<void>()
  const interrupted = yield* Deferred.make<void>()
  const side = yield* worker(server.url, {
    run: (job) =>
      Effect.gen(function*() {
        yield* Effect.orDie(job.claim("mayHaveBeenSent"))
        job.reply.start(head)
        job.reply.write(Buffer.from("one, "))
        yield* Deferred.await(end)
        job.reply.write(Buffer.from("two"))
        job.reply.end(undefined)
      }).pipe(Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined)))
  })
  const answer = face.submit()
  yield* answer.receivedBytes("one, ".length)
  return {
    server,
    face,
    side,
    answer,
    end,
    interrupted,
    subject: (attempt: number, id = answer.job.id) => replySubject("chat", face.nats.id, id, attempt)
  }
})

describe("a frame", () => {
  it.live("of an unknown job, another attempt or another worker is rejected and left out of the answer", () =>
    Effect.gen(function*() {
      const { answer, end, face, server, subject } = yield* startStreamingJob
      const { heard, send } = yield* stranger(server)
      const claim: Frame = { type: "claim", redispatch: "idempotent" }
      const payload = Buffer.from("not of this answer")
      const stale: ReadonlyArray<readonly [about: string, subject: string, frame: Frame]> = [
        ["unknownClaim", subject(1, "unknown"), claim],
        ["unknownData", subject(1, "unknown"), data(0)],
        ["earlierAttempt", subject(0), data(1)],
        ["laterAttempt", subject(2), data(1)],
        ["noAttempt", `${subject(1)}x`, data(1)],
        ["otherClaim", subject(1), claim],
        ["otherData", subject(1), data(1)],
        ["otherEnd", subject(1), data(1, true)],
        ["otherHeartbeat", subject(1), { type: "heartbeat", sequence: 9 }],
        ["otherPull", subject(1), { type: "pull", offset: 0, length: 10 }]
      ]
      for (const [about, subject, frame] of stale) send(subject, frame, about, payload)
      assert.deepStrictEqual(
        yield* Queue.takeN(heard, stale.length),
        // the sender of a claim learns that another worker holds it, because the job is active
        stale.map(([about]) => `${about === "otherClaim" ? "cancel" : "no"} ${about}`)
      )
      const claims = {
        type: "claims",
        claims: ["unknown", answer.job.id].map((job): Claim => ({
          job,
          attempt: 1,
          redispatch: "idempotent",
          behind: 0
        }))
      } as const
      send(aboutWorkerSubject("chat", face.nats.id, "stranger"), claims, "-", payloadOf(claims))
      assert.deepStrictEqual(yield* Queue.takeN(heard, 2), ["no unknown", `no ${answer.job.id}`])
      yield* Deferred.succeed(end, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
      assert.strictEqual(answer.claims, 1)
      // the job is over, so that its own worker would be rejected too; but a worker's last frame needs no cancellation
      send(subject(1), data(2, true), "lateEnd")
      send(subject(1), { type: "error", sequence: 2, error: new JobError.InternalError() }, "lateError")
      send(subject(1), data(2), "lateData")
      assert.strictEqual(yield* Queue.take(heard), "no lateData")
    }))

  it.live("of a former attempt of a job that has ended learns that another worker meters the job", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      yield* worker(server.url, {
        run: (job) =>
          job.pulled.attempt > 1 || job.pulled.model === "once"
            ? reply(job)
            : Effect.andThen(
              Effect.orDie(job.claim("idempotent")),
              Effect.sync(() => job.reply.fail(new JobError.WorkerLost()))
            )
      })
      const [repeated, once] = [face.submit({ model: "repeated" }), face.submit({ model: "once" })]
      yield* Effect.all([repeated.usage, once.usage])
      const { connection, send } = yield* stranger(server)
      const fates = yield* Queue.unbounded<unknown>()
      connection.subscribe("ctl.chat.stranger.>", {
        callback: (_, message) => void Queue.offerUnsafe(fates, decodeControl(message))
      })
      yield* Effect.promise(() => connection.flush())
      const claim: Frame = { type: "claim", redispatch: "idempotent" }
      for (const [{ job: { id } }, attempt] of [[repeated, 1], [repeated, 2], [once, 1]] as const) {
        send(replySubject("chat", face.nats.id, id, attempt), claim, id)
      }
      assert.deepStrictEqual(
        yield* Queue.takeN(fates, 3),
        ["moved", "over", "over"].map((fate) => ({ type: "no", fate }))
      )
    }))

  it.live("that is missing fails the answer at once and cancels its worker", () =>
    Effect.gen(function*() {
      const { answer, interrupted, server, side, subject } = yield* startStreamingJob
      // forges a frame of the worker that skips a number
      const { outbox } = yield* stranger(server)
      const control = controlSubject("chat", side.nats.id, answer.job.id, 1)
      outbox.publish(subject(1), Buffer.from("three"), encodeFrame(data(2)), replyOf(control, data(2)))
      assert.instanceOf(yield* answer.error, JobError.AnswerLost)
      yield* Deferred.await(interrupted)
      assert.strictEqual(answer.bytes.toString(), "one, ")
    }))

  it.live("is never sent before the claim to its job, however fast the answer is", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const face = yield* ingress(server.url)
      const { connection } = yield* stranger(server)
      const subscription = connection.subscribe("r.>", { max: 1 })
      yield* Effect.promise(() => connection.flush())
      yield* worker(server.url, {
        run: (job) =>
          Effect.gen(function*() {
            // claims of jobs that may be repeated may wait in the outbox
            yield* Effect.orDie(job.claim("idempotent"))
            job.reply.start(head)
            job.reply.end(undefined)
          })
      })
      yield* face.submit().usage
      const [message] = yield* Effect.promise(() => Array.fromAsync(subscription))
      assert.deepStrictEqual(
        decodeBundle(message!.data)?.entries.map((entry) => entry.type === "frame" ? entry.frame.type : entry.type),
        ["server", "claim", "data"]
      )
    }))

  it.live("that is malformed has no effect, and neither has a malformed control message", () =>
    Effect.gen(function*() {
      const { answer, end, face, server, side, subject } = yield* startStreamingJob
      const { connection, outbox } = yield* stranger(server)
      const noise = [
        undefined,
        "NATS/1.0\r\n\r\n",
        ...[
          "dance",
          "data",
          "data {}",
          "data []",
          "data [null]",
          "data [[200,\"always\",\"text/plain\",[1]],null]",
          "pull x"
        ].map(
          (value) => `NATS/1.0\r\nGw-Frame: ${value}\r\n\r\n`
        ),
        "NATS/1.0\r\nGw-Ctl: dance\r\n\r\n"
      ]
      const subjects = [
        subject(1),
        `r.chat.${face.nats.id}.x`,
        controlSubject("chat", side.nats.id, answer.job.id, 1),
        controlSubject("chat", side.nats.id, "unknown", 1),
        `in.chat.${side.nats.id}.${answer.job.id}.1`
      ]
      for (const to of subjects) {
        for (const headers of noise) outbox.publish(to, Buffer.from("noise"), headers, "nobody.hears")
      }
      yield* Effect.promise(() => new Promise<void>((resolve) => outbox.afterFlush(resolve)))
      yield* Effect.promise(() => connection.flush())
      yield* Deferred.succeed(end, undefined)
      yield* answer.usage
      assert.strictEqual(answer.bytes.toString(), "one, two")
    }))
})
