/** Video tasks through real processes: created, polled, downloaded in parts, cancelled, isolated. */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import OpenAI from "openai"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { longVideo, type ShownTask, smallVideo, veryLongVideo, VideoClient } from "../../fixture/client/VideoClient.ts"
import { inspect } from "../../fixture/media/VideoFile.ts"

const shared = sharedGateway({
  workers: 0,
  services: ["video"],
  models: `
  few-videos: { workload: video, targets: [{ provider: local }], maxVideos: 1 }
  no-videos: { workload: video, targets: [{ provider: paid }] }`
})
const client = () => new VideoClient(shared())

/** The time of an answer by its header, in whole seconds since the epoch. */
const timeOf = ({ headers }: Response): number => Date.parse(headers.get("date") ?? "") / 1_000

/** The status and the error of an answer. */
const refusal = async (answer: Response) => ({
  status: answer.status,
  ...(await answer.json() as { readonly error: { readonly code: string; readonly param: string | null } }).error
})

describe("a video task", () => {
  it("is created at once, progresses, and ends with the requested video", async () => {
    const before = timeOf(await fetch(shared().url))
    const answer = await client().post({ ...smallVideo, duration: 3, width: 320, height: 180, fps: 24, seed: 7 })
    assert.strictEqual(answer.status, 200)
    const made = await answer.json() as ShownTask
    assert.hasAllKeys(made, ["task_id", "status"])
    assert.match(made.task_id, /^task_[0-9A-Za-z]{32}$/)
    assert.strictEqual(made.status, "queued")

    const half = await client().until(made.task_id, ({ progress }) => progress > 0)
    assert.strictEqual("url" in half, half.status === "completed")
    const task = await client().untilEnded(made.task_id)
    assert.deepInclude(task, {
      task_id: made.task_id,
      status: "completed",
      progress: 100,
      model: "local-video",
      format: "mp4",
      metadata: { duration: 3, fps: 24, width: 320, height: 180, seed: 7 },
      error: null
    })
    assert.isAtLeast(task.created, before)
    assert.isAtMost(task.created, timeOf(answer) + 1)
    assert.isAtLeast(task.completed_at!, task.created)
    assert.strictEqual(task.expires_at, task.completed_at! + 24 * 3600)
    const { answer: content, bytes } = await client().content(made.task_id)
    assert.strictEqual(content.headers.get("content-type"), "video/mp4")
    const { frames, height, width } = await inspect(bytes)
    assert.deepStrictEqual({ frames, height, width }, { frames: 72, height: 180, width: 320 })
  })

  it("serves its video in parts, with the key or through the signed URL", async () => {
    const id = await client().create({ ...smallVideo, width: 320, height: 320 })
    const { url } = await client().untilEnded(id)
    const { answer, bytes } = await client().content(id)
    assert.strictEqual(answer.headers.get("accept-ranges"), "bytes")
    assert.strictEqual(Number(answer.headers.get("content-length")), bytes.length)

    const parts: Array<Uint8Array> = []
    for (let at = 0; at < bytes.length; at += 1_000) {
      const part = await client().content(id, `bytes=${at}-${at + 999}`)
      assert.strictEqual(part.answer.status, 206)
      const last = Math.min(at + 1_000, bytes.length) - 1
      assert.strictEqual(part.answer.headers.get("content-range"), `bytes ${at}-${last}/${bytes.length}`)
      parts.push(part.bytes)
    }
    assert.isAbove(parts.length, 2)
    assert.isTrue(Buffer.concat(parts).equals(bytes))
    assert.isTrue(Buffer.from((await client().content(id, "bytes=-10")).bytes).equals(bytes.subarray(-10)))
    assert.isTrue(Buffer.from((await client().content(id, "bytes=5-")).bytes).equals(bytes.subarray(5)))

    const behind = await client().request(`/${id}/content`, { headers: { range: `bytes=${bytes.length}-` } })
    assert.strictEqual(behind.headers.get("content-range"), `bytes */${bytes.length}`)
    assert.deepInclude(await refusal(behind), { status: 416, code: "range_not_satisfiable" })

    const { pathname, search } = new URL(url!)
    const signed = await fetch(`${shared().url}${pathname}${search}`)
    assert.isTrue(Buffer.from(await signed.arrayBuffer()).equals(bytes))
    const forged = await fetch(`${shared().url}${pathname}${search.replace("expires=1", "expires=2")}`)
    assert.deepInclude(await refusal(forged), { status: 403, code: "invalid_signature" })
    const bare = await fetch(`${shared().url}${pathname}`)
    assert.deepInclude(await refusal(bare), { status: 401, code: "missing_api_key" })
  })

  it("makes several videos, each with a seed, a URL and a file of its own", async () => {
    const id = await client().create({ ...smallVideo, seed: 7, n: 3 })
    const task = await client().untilEnded(id)
    assert.deepInclude(task, { task_id: id, status: "completed", progress: 100, format: "mp4", error: null })
    assert.deepStrictEqual(task.data.map(({ metadata }) => metadata.seed), [7, 8, 9])
    assert.deepStrictEqual([task.url, task.metadata], [task.data[0]?.url, task.data[0]?.metadata] as unknown)

    const signed = await Promise.all(task.data.map(async ({ url }) => {
      const { pathname, search } = new URL(url)
      return Buffer.from(await (await fetch(`${shared().url}${pathname}${search}`)).arrayBuffer())
    }))
    for (const [index, bytes] of signed.entries()) {
      assert.strictEqual((await inspect(bytes)).frames, 5)
      assert.isTrue(bytes.equals((await client().content(id, undefined, index)).bytes))
      assert.isFalse(bytes.equals(signed[(index + 1) % 3]!))
    }
    const { pathname, search } = new URL(task.data[1]!.url)
    const forged = await fetch(`${shared().url}${pathname}${search.replace("video=1", "video=2")}`)
    assert.deepInclude(await refusal(forged), { status: 403, code: "invalid_signature" })
    const beyond = await client().content(id, undefined, 3)
    assert.strictEqual(beyond.answer.status, 404)
    assert.deepInclude(await refusal(await client().request(`/${id}/content?video=x`)), { status: 400, param: "video" })
    // the id of one of the videos is no task of its own
    assert.deepInclude(await refusal(await client().request(`/${id}-1`)), { status: 404 })
  })

  it("with several videos is created once per idempotency key, and cancelled as a whole", async () => {
    const key = { "idempotency-key": "several" }
    const several = { ...longVideo, n: 4 }
    const ids = await Promise.all([client().create(several, key), client().create(several, key)])
    assert.strictEqual(ids[0], ids[1])
    await client().until(ids[0]!, ({ status }) => status === "in_progress")
    const answer = await client().request(`/${ids[0]}`, { method: "DELETE" })
    assert.deepInclude(await answer.json(), { status: "cancelled", data: [], error: null })
    await untilNoJobs(shared().nats, "video")
    assert.strictEqual((await client().show(ids[0]!)).status, "cancelled")
  })

  it("is rejected at its creation if the model cannot make it", async () => {
    const base64 = (text: string) => Buffer.from(text).toString("base64")
    for (
      const [more, param, code = "invalid_value"] of [
        [{ image: "data:image/png;base64,AAAA" }, "image"],
        [{ image: `data:text/plain;base64,${base64("a text")}` }, "image"],
        [{ image: base64("no picture") }, "image"],
        [{ metadata: { quality_level: "divine" } }, "metadata.quality_level"],
        [{ response_format: "b64_json" }, "response_format"],
        [{ width: 3840, height: 2160 }, "width"],
        [{ duration: 30 }, "duration"],
        [{ fps: 120 }, "fps"],
        [{ seed: -1 }, "seed"],
        [{ n: 5 }, "n"],
        [{ model: "few-videos", n: 2 }, "n"],
        [{ model: "no-videos" }, "model", "operation_not_supported"]
      ] as const
    ) {
      const answer = await refusal(await client().post({ ...smallVideo, ...more }))
      assert.deepInclude(answer, { status: 400, param, code }, JSON.stringify(more))
    }
  })

  it("is created once per idempotency key", async () => {
    const key = { "idempotency-key": "one of a kind" }
    const ids = await Promise.all(Array.from({ length: 5 }, () => client().create(smallVideo, key)))
    assert.lengthOf(new Set(ids), 1)
    assert.deepInclude(await refusal(await client().post({ ...smallVideo, seed: 1 }, key)), {
      status: 422,
      code: "idempotency_key_reused"
    })
    const other = new VideoClient(shared(), await shared().createKey("2100-01-01"))
    assert.notStrictEqual(await other.create(smallVideo, key), ids[0])
    assert.notStrictEqual(await client().create(smallVideo, { "idempotency-key": "another" }), ids[0])
    await client().untilEnded(ids[0]!)
    assert.strictEqual(await client().create(smallVideo, key), ids[0])
    assert.deepInclude(await refusal(await client().post(smallVideo, { "idempotency-key": "" })), {
      status: 400,
      param: "idempotency-key"
    })
  })

  it("stops when it is cancelled, running or queued", async () => {
    const running = [await client().create(veryLongVideo), await client().create(veryLongVideo)]
    for (const id of running) {
      await client().until(id, ({ status }) => status === "in_progress")
      assert.strictEqual((await client().request(`/${id}`)).headers.get("retry-after"), "2")
    }
    const queued = await client().create(smallVideo)
    for (const id of [queued, ...running]) {
      assert.deepInclude(await refusal(await client().request(`/${id}/content`)), {
        status: 400,
        code: "task_not_completed"
      })
      const answer = await client().request(`/${id}`, { method: "DELETE" })
      assert.strictEqual(answer.status, 200)
      assert.deepInclude(await answer.json(), { task_id: id, status: "cancelled", error: null })
    }
    // the worker acknowledges a task when it has stopped
    await untilNoJobs(shared().nats, "video")
    for (const id of [queued, ...running]) assert.strictEqual((await client().show(id)).status, "cancelled")
  })

  it("is not changed by a cancellation after its end", async () => {
    const id = await client().create(smallVideo)
    await client().untilEnded(id)
    const answer = await client().request(`/${id}`, { method: "DELETE" })
    assert.deepInclude(await answer.json(), { status: "completed" })
    assert.strictEqual((await client().content(id)).answer.status, 200)
  })

  it("is not found for another tenant, and neither is an unknown one", async () => {
    const id = await client().create(smallVideo)
    const other = new VideoClient(shared(), await shared().createKey("2100-01-01"))
    for (const [who, what] of [[other, id], [client(), `task_${"0".repeat(32)}`], [client(), "nonsense"]] as const) {
      for (const [suffix, method] of [["", "GET"], ["/content", "GET"], ["", "DELETE"]] as const) {
        const answer = await who.request(`/${what}${suffix}`, { method })
        assert.deepInclude(await refusal(answer), { status: 404, code: "task_not_found" })
      }
    }
    const stranger = new VideoClient(shared(), "sk-gw-00000000000000000000000000000000")
    assert.deepInclude(await refusal(await stranger.request(`/${id}`)), { status: 401, code: "invalid_api_key" })
    assert.strictEqual((await client().untilEnded(id)).status, "completed")
  })

  it("is the owner's, for a key that replaces its key", async () => {
    const first = await shared().createKeyWith({})
    const key = { "idempotency-key": "kept" }
    const former = new VideoClient(shared(), first.key)
    const id = await former.create(smallVideo, key)
    const [replacement = ""] = /sk-gw-\w+/.exec(await shared().admin("keys", "replace", first.id)) ?? []
    await shared().admin("keys", "revoke", first.id)
    await eventually(() => former.request(`/${id}`), ({ status }) => status === 401)
    const heir = new VideoClient(shared(), replacement)
    assert.strictEqual((await heir.untilEnded(id)).status, "completed")
    assert.strictEqual(await heir.create(smallVideo, key), id)
    assert.strictEqual((await heir.content(id)).answer.status, 200)
  })

  it("fails with its request's mistake if only the worker can detect it", async () => {
    for (
      const [more, param] of [
        [{ image: Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR and no more", "latin1").toString("base64") }, "image"],
        [{ image: "http://127.0.0.1:1/secret.png" }, "image"]
      ] as const
    ) {
      const task = await client().untilEnded(await client().create({ ...smallVideo, ...more }))
      assert.strictEqual(task.status, "failed")
      assert.strictEqual(task.error?.param, param)
      assert.deepInclude(await refusal(await client().request(`/${task.task_id}/content`)), {
        status: 400,
        code: "task_not_completed"
      })
    }
  })

  it("is served to the official client's raw requests", async () => {
    const openai = new OpenAI({ apiKey: shared().key, baseURL: `${shared().url}/v1`, maxRetries: 0 })
    const made = await openai.post<ShownTask>("/video/generations", { body: smallVideo })
    await client().untilEnded(made.task_id)
    const task = await openai.get<ShownTask>(`/video/generations/${made.task_id}`)
    assert.strictEqual(task.status, "completed")
    const content = await openai.get<Response>(`/video/generations/${made.task_id}/content`, { __binaryResponse: true })
    assert.strictEqual((await inspect(new Uint8Array(await content.arrayBuffer()))).frames, 5)
    const wrong = await openai.post("/video/generations", { body: { ...smallVideo, fps: 0 } }).catch((error: unknown) =>
      error
    )
    assert.instanceOf(wrong, OpenAI.BadRequestError)
    assert.strictEqual(wrong.param, "fps")
  })
})
