/** Videos of the dashscope protocol: creation of a task, its polling, and its result. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { VideoGenerationRequest } from "../../../../shared/contract/operations/VideoGenerations.ts"
import * as DashScopeVideo from "../../../../shared/provider/protocols/dashscope/DashScopeVideo.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { Secrets } from "../../../../shared/provider/transport/Secrets.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import type { VideoCall, VideoEngine } from "../../../../shared/provider/call/VideoEngine.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { keyReference, secretsWith } from "../../../fixture/ProviderKey.ts"
import { inspect } from "../../../fixture/media/VideoFile.ts"

type Wish = Partial<VideoGenerationRequest>

interface Bench {
  readonly provider: FakeProvider
  readonly engine: VideoEngine
  readonly callOf: (wish: Wish, model?: string) => VideoCall
  /** The bodies of the requests that create a task. */
  readonly submitted: (wish: Wish, model?: string) => Effect.Effect<unknown, JobError>
}

const bench = <A, E>(test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make({ apiKey: "secret" })
    const engine = DashScopeVideo.make(yield* Effect.all({ upstream: Upstream, guard: GuardedFetch, secrets: Secrets }))
    const callOf = (wish: Wish, model = "wan2.5-t2v-preview"): VideoCall => ({
      id: "task_1",
      request: { model: "video", prompt: "a boat", ...wish },
      endpoint: {
        name: "aliyun",
        model,
        provider: {
          protocol: "dashscope",
          baseUrl: provider.root,
          apiKey: keyReference,
          options: { pollIntervalMs: 1 }
        }
      }
    })
    return yield* test({
      provider,
      engine,
      callOf,
      submitted: (wish, model) =>
        Effect.map(engine.start(callOf(wish, model)), () => {
          const { input, parameters } = provider.requests[0]!.json as {
            readonly input: unknown
            readonly parameters: unknown
          }
          return { input, parameters }
        })
    })
  }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Upstream.layer, GuardedFetch.layer, secretsWith("secret"))))

const startAndFollow = ({ engine }: Bench, call: VideoCall) =>
  Effect.flatMap(engine.start(call), (task) => engine.follow(call, JSON.parse(JSON.stringify(task)), () => {}))

describe("creation of a task", () => {
  const picture = "https://pictures.example/a.png"
  const all: Wish = { width: 1280, height: 720, duration: 5, seed: 7 }
  const cases: ReadonlyArray<readonly [what: string, model: string, Wish, input: object, parameters: object]> = [
    ["from text", "wan2.5-t2v-preview", all, {}, { size: "1280*720", duration: 5, seed: 7 }],
    ["without a size", "wan2.5-t2v-preview", {}, {}, {}],
    [
      "beyond the bounds of other models",
      "wan2.5-t2v-preview",
      { width: 3840, height: 2160, duration: 30, seed: -1, response_format: "webm" },
      {},
      { size: "3840*2160", duration: 30, seed: -1, response_format: "webm" }
    ],
    ["in the gateway's own format", "wan2.5-t2v-preview", { response_format: "mp4" }, {}, {}],
    [
      "beyond the known tiers",
      "wan2.7-t2v",
      { width: 3840, height: 2160 },
      {},
      { resolution: "2160P", ratio: "16:9" }
    ],
    ["from a picture", "wan2.5-i2v-preview", { ...all, image: picture }, { img_url: picture }, {
      resolution: "720P",
      duration: 5,
      seed: 7
    }],
    ["for models that take tiers", "wan2.7-t2v", { width: 480, height: 640 }, {}, { resolution: "480P", ratio: "3:4" }],
    [
      "for models that take media",
      "wan3-video",
      { image: picture },
      { media: [{ type: "first_frame", url: picture }] },
      {}
    ],
    [
      "with all optional fields",
      "wan2.5-t2v-preview",
      { metadata: { negative_prompt: "fog", style: "ink", prompt_extend: false, audio: true, template: null } },
      { prompt: "a boat, ink", negative_prompt: "fog" },
      { prompt_extend: false, audio: true }
    ]
  ]
  for (const [what, model, wish, input, parameters] of cases) {
    it.live(`${what} sends the requested settings`, () =>
      bench(({ submitted }) =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* submitted(wish, model), { input: { prompt: "a boat", ...input }, parameters })
        })
      ))
  }

  it.live("makes one request, and returns only an id", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* engine.start(callOf({})), { id: "task-1" })
        assert.lengthOf(provider.requests, 1)
        assert.strictEqual(provider.requests[0]?.headers["x-dashscope-async"], "enable")
      })
    ))

  it.live("makes one request even if the provider fails", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "status", status: 503 }, { kind: "reset" }, {
          kind: "status",
          status: 400,
          error: { code: "Arrearage" }
        })
        const refusal = (call: VideoCall) => Effect.flip(Effect.asVoid(engine.start(call)))
        assert.deepInclude(yield* refusal(callOf({})), { reason: "status", status: 503 })
        assert.deepInclude(yield* refusal(callOf({})), { reason: "cut" })
        assert.deepInclude(yield* refusal(callOf({})), { reason: "credit" })
        assert.lengthOf(provider.requests, 3)
        const { endpoint, ...call } = callOf({})
        const nowhere = { ...endpoint.provider, baseUrl: "http://127.0.0.1:1" }
        assert.deepInclude(yield* refusal({ ...call, endpoint: { ...endpoint, provider: nowhere } }), {
          reason: "unreachable"
        })
      })
    ))
})

describe("a polled task", () => {
  it.live("ends with the video and its actual properties", () =>
    bench((bench) =>
      Effect.gen(function*() {
        const call = bench.callOf({ seed: 7, fps: 24, width: 1000, height: 600, metadata: { quality_level: "high" } })
        const video = yield* startAndFollow(bench, call)
        assert.deepStrictEqual(video.metadata, {
          duration: 2,
          fps: 8,
          width: 64,
          height: 64,
          seed: 7,
          warnings: ["fps", "metadata.quality_level"]
        })
        assert.strictEqual((yield* Effect.promise(() => inspect(video.bytes))).frames, 16)
        const paths = bench.provider.requests.map(({ method, path }) => `${method} ${path}`)
        assert.deepStrictEqual(paths.slice(1, -1), paths.slice(1, -1).map(() => "GET /api/v1/tasks/task-1"))
        // only the API gets the key
        assert.match(paths.at(-1) ?? "", /^GET \/files\//)
        assert.notProperty(bench.provider.requests.at(-1)?.headers, "authorization")
      })
    ))

  it.live("warns if its size differs from the requested size", () =>
    bench((bench) =>
      Effect.gen(function*() {
        const { metadata } = yield* startAndFollow(bench, bench.callOf({ width: 1000, height: 600 }, "wan2.7-t2v"))
        assert.deepStrictEqual(metadata.warnings, ["width", "height"])
        assert.isNull(metadata.seed)
      })
    ))

  const failures: ReadonlyArray<readonly [code: string, expected: object]> = [
    ["DataInspectionFailed", { _tag: "ProviderRejected", status: 400, code: "DataInspectionFailed", message: "no" }],
    ["InternalError.Algo", { _tag: "ProviderFailed", reason: "error" }]
  ]
  for (const [code, expected] of failures) {
    it.live(`that fails with ${code} is not polled again`, () =>
      bench((bench) =>
        Effect.gen(function*() {
          bench.provider.behaveOnce({ kind: "task", looks: 1, failure: { code, message: "no" } })
          assert.deepInclude(yield* Effect.flip(startAndFollow(bench, bench.callOf({}))), expected)
          assert.lengthOf(bench.provider.requests, 3)
        })
      ))
  }

  it.live("is polled again if a poll fails", () =>
    bench((bench) =>
      Effect.gen(function*() {
        const call = bench.callOf({})
        const task = yield* bench.engine.start(call)
        bench.provider.behave({ kind: "status", status: 500 })
        const { requests } = bench.provider
        const following = yield* Effect.forkChild(bench.engine.follow(call, task, () => {}))
        yield* Effect.promise(() => bench.provider.until(() => requests.length > 1))
        bench.provider.behave({ kind: "answer" })
        assert.strictEqual((yield* Fiber.join(following)).format, "mp4")
      })
    ))

  it.live("fails if its video is invalid or cannot be fetched", () =>
    bench((bench) =>
      Effect.gen(function*() {
        const call = bench.callOf({})
        const output = (video_url: string) => ({
          output: { task_id: "task-1", task_status: "SUCCEEDED", video_url },
          request_id: "r"
        })
        const answer = (url: string) => bench.provider.behave({ kind: "raw", pieces: [JSON.stringify(output(url))] })
        answer("http://169.254.169.254/latest/meta-data")
        assert.deepInclude(yield* Effect.flip(bench.engine.follow(call, { id: "task-1" }, () => {})), {
          reason: "result"
        })
        // every path answers with the same JSON
        answer(`${bench.provider.root}/nowhere.mp4`)
        assert.deepInclude(yield* Effect.flip(bench.engine.follow(call, { id: "task-1" }, () => {})), {
          reason: "malformed"
        })
      })
    ))

  it.live("is cancelled at the provider if that is still possible", () =>
    bench((bench) =>
      Effect.gen(function*() {
        const call = bench.callOf({})
        const task = yield* bench.engine.start(call)
        yield* bench.engine.cancel(call, task)
        assert.strictEqual(bench.provider.requests.at(-1)?.path, "/api/v1/tasks/task-1/cancel")
        assert.deepInclude(yield* Effect.flip(bench.engine.follow(call, task, () => {})), { reason: "error" })
        assert.deepInclude(yield* Effect.flip(bench.engine.cancel(call, task)), {
          _tag: "ProviderRejected",
          code: "UnsupportedOperation"
        })
      })
    ))
})
