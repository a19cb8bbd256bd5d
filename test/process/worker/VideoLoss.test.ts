/** Video tasks finish once, whatever dies while they run. */
import { assert, describe, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { longVideo, VideoClient } from "../../fixture/client/VideoClient.ts"
import { inspect } from "../../fixture/media/VideoFile.ts"
import { untilRecord } from "../../fixture/nats/VideoRecord.ts"

const options = { workers: 0 }

const whole = async (client: VideoClient, id: string) => {
  const task = await client.untilEnded(id)
  assert.deepInclude(task, { status: "completed", progress: 100, error: null })
  const { bytes } = await client.content(id)
  const { frames, height, width } = await inspect(bytes)
  assert.deepStrictEqual({ frames, height, width }, { frames: 240, height: 360, width: 640 })
}

describe("a video task", () => {
  it.live(
    "is continued by another worker when its own is killed",
    () =>
      Gateway.run(options, async (gateway) => {
        const client = new VideoClient(gateway)
        const dying = await gateway.startWorker({}, "video")
        const id = await client.create(longVideo)
        const { progress } = await client.until(id, ({ progress }) => progress > 2)
        const { providerTask } = await untilRecord(gateway.nats, id, ({ claims }) => claims === 1)
        const killed = performance.now()
        await dying.kill()
        await gateway.startWorker({}, "video")
        const second = await untilRecord(gateway.nats, id, ({ claims }) => claims === 2)
        console.log(`another worker continued ${(performance.now() - killed).toFixed(0)} ms after kill -9`)
        // the provider's own task is kept, and its progress does not go back
        assert.deepStrictEqual(second.providerTask, providerTask)
        assert.isAtLeast(second.progress, progress)
        await whole(client, id)
        assert.strictEqual((await untilRecord(gateway.nats, id, () => true)).claims, 2)
        await untilNoJobs(gateway.nats, "video")
      }),
    300_000
  )

  it.live(
    "is released by its worker on SIGTERM and continued by another",
    () =>
      Gateway.run({ ...options, environment: { WORKER_GRACE_MS: "0" } }, async (gateway) => {
        const client = new VideoClient(gateway)
        const ending = await gateway.startWorker({}, "video")
        const id = await client.create(longVideo)
        await client.until(id, ({ progress }) => progress > 2)
        assert.strictEqual(await ending.terminate(), 0)
        const left = await untilRecord(gateway.nats, id, () => true)
        assert.deepInclude(left, { status: "in_progress", holder: null, claims: 1 })
        await gateway.startWorker({}, "video")
        await whole(client, id)
        assert.strictEqual((await untilRecord(gateway.nats, id, () => true)).claims, 2)
      }),
    300_000
  )

  it.live(
    "is not harmed by a frozen worker that wakes",
    () =>
      Gateway.run(options, async (gateway) => {
        const client = new VideoClient(gateway)
        const frozen = await gateway.startWorker({ WORKER_SLOTS: "1" }, "video")
        const id = await client.create(longVideo)
        await client.until(id, ({ progress }) => progress > 2)
        frozen.freeze()
        await gateway.startWorker({ WORKER_SLOTS: "1" }, "video")
        const second = await untilRecord(gateway.nats, id, ({ claims }) => claims === 2)
        frozen.thaw()
        await whole(client, id)
        const last = await untilRecord(gateway.nats, id, () => true)
        assert.strictEqual(last.claims, second.claims)
        await untilNoJobs(gateway.nats, "video")
        assert.isFalse(frozen.hasExited)
      }),
    300_000
  )

  it.live(
    "finishes although nats-server is killed and restarted",
    () =>
      Gateway.run(options, async (gateway) => {
        const client = new VideoClient(gateway)
        const worker = await gateway.startWorker({}, "video")
        const id = await client.create(longVideo)
        await client.until(id, ({ progress }) => progress > 2)
        await gateway.nats.kill()
        const refused = await client.post(longVideo)
        assert.strictEqual(refused.status, 503)
        assert.isNotNull(refused.headers.get("retry-after"))
        await gateway.nats.restart()
        await whole(client, id)
        await untilNoJobs(gateway.nats, "video")
        assert.isFalse(worker.hasExited)
        assert.isFalse(gateway.ingress.hasExited)
      }),
    300_000
  )
})
