/** A call that must not be repeated sends nothing before its commitment, and a call that breaks its reader ends alone. */
import { assert, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { Cancelled } from "../../../../shared/contract/JobError.ts"
import { type Commit, Commitment } from "../../../../shared/provider/transport/Commitment.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"

/** A server that answers, and records its connections and the bytes it received. */
const listener = Effect.gen(function*() {
  const connected = yield* Deferred.make<void>()
  let heard = ""
  const server = createServer((socket) => {
    Deferred.doneUnsafe(connected, Effect.void)
    socket.on("data", (bytes) => {
      heard += bytes.toString()
      if (heard.endsWith("the body")) socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.sync(() => server.close())
  )
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/path`)
  return { connected: Deferred.await(connected), heard: () => heard, url }
})

const call = (url: URL, commit: Commit, onData?: (bytes: Uint8Array) => void) =>
  Effect.gen(function*() {
    const upstream = yield* Upstream
    let answer = ""
    const request = { provider: "paid", headers: [], firstByteMs: 10_000, idleMs: 10_000, totalMs: 10_000 }
    yield* upstream.exchange({
      ...request,
      address: { origin: url.origin, path: url.pathname },
      body: Buffer.from("the body")
    }, () => ({
      onHead: () => {},
      onData: onData ?? ((bytes) => {
        answer += Buffer.from(bytes).toString()
      })
    }))
    return answer
  }).pipe(Effect.provideService(Commitment, commit), Effect.provide(Upstream.layer))

it.live("nothing is sent before the commitment, which follows the connection", () =>
  Effect.gen(function*() {
    const { connected, heard, url } = yield* listener
    const asked = yield* Deferred.make<void>()
    const granted = yield* Deferred.make<void>()
    const answer = yield* Effect.forkChild(
      call(url, Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(granted)))
    )
    yield* connected
    yield* Deferred.await(asked)
    assert.strictEqual(heard(), "")
    yield* Deferred.succeed(granted, undefined)
    assert.strictEqual(yield* Fiber.join(answer), "ok")
    assert.match(heard(), /^POST \/path HTTP\/1\.1\r\n[^]*content-length: 8\r\n(?:[^\r]+\r\n)*\r\nthe body$/)
  }))

it.live("nothing is sent if the commitment is refused", () =>
  Effect.gen(function*() {
    const { connected, heard, url } = yield* listener
    const error = yield* Effect.flip(call(url, Effect.fail(new Cancelled())))
    assert.instanceOf(error, Cancelled)
    yield* connected
    assert.strictEqual(heard(), "")
  }))

it.live("an exception in the reader of an answer is a defect of this call", () =>
  Effect.gen(function*() {
    const { url } = yield* listener
    const exit = yield* Effect.exit(call(url, Effect.void, () => {
      // as `JSON.stringify` does with arguments of a tool that are nested too deeply
      throw new RangeError("Maximum call stack size exceeded")
    }))
    assert(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
  }))
