/** Video tasks finish once, whatever dies while they run. */
import { assert, describe, it } from "@effect/vitest"
import { sharedProcesses } from "../../fixture/gateway/SharedGateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { longVideo, VideoClient } from "../../fixture/client/VideoClient.ts"
import { inspect } from "../../fixture/media/VideoFile.ts"
import { untilRecord } from "../../fixture/nats/VideoRecord.ts"

const shared = sharedProcesses({ workers: 0, wired: true })

/** A video that takes some renewals of its worker's claim. */
const wish = { ...longVideo, duration: 10 }

const whole = async (client: VideoClient, id: string) => {
  const task = await client.untilEnded(id)
  assert.deepInclude(task, { status: "completed", progress: 100, error: null })
  const { bytes } = await client.content(id)
  const { frames, height, width } = await inspect(bytes)
  assert.deepStrictEqual({ frames, height, width }, { frames: 120, height: 360, width: 640 })
}

/** The worker's first write of a task's progress. */
const isProgress = (command: string): boolean =>
  /PUB \$KV\.VIDEO_TASKS\.[^]*"status":"in_progress","progress":[1-9]/.test(command)

/** Starts a worker, and a task that it begins. Returns once its progress is recorded, and holds the worker there. */
const begin = async (environment: Readonly<Record<string, string>> = {}) => {
  const client = new VideoClient(shared())
  const worker = await shared().startWorker(environment, "video")
  const held = worker.holdAt((command) => isProgress(command) ? "after" : undefined)
  const id = await client.create(wish)
  await held
  return { client, id, worker }
}

describe("a video task", () => {
  it("is continued by another worker when its own is killed", async () => {
    const { nats } = shared()
    const { client, id, worker } = await begin()
    const { progress, providerTask } = await untilRecord(nats, id, ({ claims }) => claims === 1)
    await worker.kill()
    const next = await shared().startWorker({}, "video")
    // after its claim, and JetStream's wait for the worker's acknowledgement
    const second = await untilRecord(nats, id, ({ claims }) => claims === 2)
    // the provider's own task is kept, and its progress does not go back
    assert.deepStrictEqual(second.providerTask, providerTask)
    assert.isAtLeast(second.progress, progress)
    await whole(client, id)
    assert.strictEqual((await untilRecord(nats, id, () => true)).claims, 2)
    await untilNoJobs(nats, "video")
    await next.terminate()
  })

  it("is released by its worker on SIGTERM and continued by another", async () => {
    const { nats } = shared()
    const { client, id, worker } = await begin({ WORKER_GRACE_MS: "0" })
    worker.mend()
    assert.strictEqual(await worker.terminate(), 0)
    const left = await untilRecord(nats, id, () => true)
    assert.deepInclude(left, { status: "in_progress", holder: null, claims: 1 })
    const next = await shared().startWorker({}, "video")
    await whole(client, id)
    assert.strictEqual((await untilRecord(nats, id, () => true)).claims, 2)
    await next.terminate()
  })

  it("is not harmed by a frozen worker that wakes", async () => {
    const { nats } = shared()
    const { client, id, worker: frozen } = await begin({ WORKER_SLOTS: "1" })
    frozen.freeze()
    frozen.mend()
    const next = await shared().startWorker({ WORKER_SLOTS: "1" }, "video")
    const second = await untilRecord(nats, id, ({ claims }) => claims === 2)
    frozen.thaw()
    await whole(client, id)
    const last = await untilRecord(nats, id, () => true)
    assert.strictEqual(last.claims, second.claims)
    await untilNoJobs(nats, "video")
    assert.isFalse(frozen.hasExited)
    await Promise.all([frozen.terminate(), next.terminate()])
  })

  it("finishes although nats-server is killed and restarted", async () => {
    const { ingress, nats } = shared()
    const { client, id, worker } = await begin()
    await nats.kill()
    const refused = await client.post(wish)
    assert.strictEqual(refused.status, 503)
    assert.isNotNull(refused.headers.get("retry-after"))
    worker.mend()
    await nats.restart()
    await whole(client, id)
    await untilNoJobs(nats, "video")
    assert.isFalse(worker.hasExited)
    assert.isFalse(ingress.hasExited)
  })
})
