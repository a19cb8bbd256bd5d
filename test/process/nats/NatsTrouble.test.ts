/** NATS with a full disk, and NATS that disconnects a client that does not read. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager, StorageType } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { isTaskQueue, newestOf, queuesIn } from "../../../shared/bus/protocol/Subjects.ts"
import { windowBytes } from "../../../shared/bus/protocol/Timings.ts"
import { streamConfig } from "../../../shared/bus/provision/JobStreams.ts"
import { workloads } from "../../../shared/contract/Operation.ts"
import { eventConfig } from "../../../shared/nats/EventStream.ts"
import { events } from "../../../shared/nats/Storage.ts"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { eventually, hungAfterMs } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { type NatsAddress, NatsServer } from "../../fixture/nats/NatsServer.ts"
import { smallVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

/** Makes the streams of events and tasks smaller than the gateway does, because they reserve their space on disk. */
const shrinkStreams = async ({ url }: NatsAddress): Promise<void> => {
  const connection = await connect({ servers: url.split(",") })
  const manager = await jetstreamManager(connection)
  const queues = queuesIn(workloads.map((workload) => ({ workload, pool: "default" }))).map(({ queue }) => queue)
  const streams = [
    ...Object.values(events).map((kept) => eventConfig(kept, 1)),
    ...queues.filter(isTaskQueue).map((queue) => streamConfig(queue, newestOf(queue), 1))
  ]
  for (const config of streams) await manager.streams.add({ ...config, max_bytes: 4 * 1024 * 1024 })
  await connection.close()
}

/** Fills the disk up to the server's limit; returns how to free it. */
const fillDisk = async ({ url }: NatsAddress): Promise<() => Promise<void>> => {
  const connection = await connect({ servers: url.split(",") })
  const manager = await jetstreamManager(connection)
  await manager.streams.add({ name: "JUNK", subjects: ["junk"], storage: StorageType.File })
  const megabyte = new Uint8Array(1_000_000)
  const pour = async () => {
    for (;;) {
      const answer = await connection.request("junk", megabyte, { timeout: hungAfterMs })
      if (answer.json<{ readonly error?: object }>().error !== undefined) return
    }
  }
  await Promise.all(Array.from({ length: 8 }, pour))
  return async () => {
    await manager.streams.delete("JUNK")
    await connection.close()
  }
}

describe("a full disk", () => {
  it.live("rejects new tasks with a time to retry, keeps the stored ones and does not affect chat", () =>
    Effect.scoped(Effect.gen(function*() {
      const nats = yield* NatsServer.make({ config: "jetstream { max_file: 100MB }" })
      yield* Effect.promise(() => shrinkStreams(nats))
      yield* Gateway.runHereOn(nats, { services: ["video"] }, async (gateway) => {
        const client = new VideoClient(gateway)
        const first = await client.create(smallVideo)
        await client.untilEnded(first)
        const makeRoom = await fillDisk(nats)
        const refused = await client.post(smallVideo)
        assert.strictEqual(refused.status, 503)
        assert.isAtLeast(Number(refused.headers.get("retry-after")), 1)
        assert.deepStrictEqual(await outcomeOf(gateway.request(chat("paid-chat"))), { kind: "whole" })
        assert.isAbove((await client.content(first)).bytes.length, 0)
        await makeRoom()
        const second = await client.create(smallVideo)
        assert.deepInclude(await client.untilEnded(second), { status: "completed" })
        await untilNoJobs(nats, "video")
      })
    })))
})

describe("a client that does not read from NATS", () => {
  const streams = 24

  it.live("is disconnected; what it missed is sent again or becomes an error, never a partial answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const nats = yield* NatsServer.make({ config: `max_pending: 1MB, write_deadline: "1s"` })
      yield* Gateway.runHereOn(nats, {}, async (gateway) => {
        const { provider } = gateway
        const ingress = await startProcess(gateway, "ingress")
        provider.behave({ kind: "hold", after: 2 })
        // a window of each answer: many times what NATS and the kernel buffer for a client
        provider.say(`word ${"x".repeat(1.5 * windowBytes)}`)
        const waiting = await Promise.all(
          Array.from(
            { length: streams },
            () => startStream(gateway.request(chat("free-chat", { stream: true }), { ingress }))
          )
        )
        ingress.freeze()
        provider.release()
        await eventually(() => nats.log, (log) => log.includes("Slow Consumer"))
        ingress.thaw()
        provider.behave({ kind: "answer" })
        const outcomes = tally(await Promise.all(waiting.map((stream) => stream.outcome())))
        const { "failed answer_lost": answers = 0, "failed worker_lost": workers = 0, whole = 0 } = outcomes
        // all may be whole: the worker sends again what it still keeps
        assert.strictEqual(answers + workers + whole, streams)
        assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"), { ingress })), { kind: "whole" })
        await untilNoJobs(nats)
      })
    })))
})
