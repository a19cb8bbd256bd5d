/** Video tasks of a provider: exactly one task at the provider for each of the gateway's, whatever dies. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ExactJson from "../../../shared/bounds/ExactJson.ts"
import { type AnyGateway, Gateway, providerKey } from "../../fixture/gateway/Gateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { expireClaims } from "../../fixture/nats/LostWorkers.ts"
import { VideoClient } from "../../fixture/client/VideoClient.ts"
import { inspect } from "../../fixture/media/VideoFile.ts"
import { clip, done, veo } from "../../fixture/provider/Veo.ts"
import { videoModels as options } from "../../fixture/gateway/VideoModels.ts"
import { untilRecord } from "../../fixture/nats/VideoRecord.ts"

const wish = { model: "paid-video", prompt: "a boat", duration: 2, width: 832, height: 480 }

const submissions = ({ provider }: AnyGateway): number =>
  provider.requests.filter(({ path }) => path.endsWith("/video-synthesis")).length

const looks = ({ provider }: AnyGateway): number => provider.requests.filter(({ method }) => method === "GET").length

describe("a video task at a provider", () => {
  it.live("ends with the provider's video", () =>
    Gateway.runHere({ ...options, services: ["video"] }, async (gateway) => {
      const client = new VideoClient(gateway)
      const task = await client.untilEnded(await client.create({ ...wish, fps: 24 }))
      assert.deepInclude(task, { status: "completed", progress: 100, model: "paid-video", error: null })
      assert.deepStrictEqual(task.metadata, {
        duration: 2,
        fps: 8,
        width: 64,
        height: 64,
        seed: null,
        warnings: ["fps"]
      })
      const { bytes } = await client.content(task.task_id)
      assert.strictEqual((await inspect(bytes)).frames, 16)
      assert.strictEqual(submissions(gateway), 1)
    }))

  // seeds have up to 64 bits; -1 asks the provider for a random one, as every negative seed may
  const seeds: ReadonlyArray<readonly [seed: string, sent: ReadonlyArray<string>]> = [
    ["7", ["7", "8"]],
    ["9007199254740991", ["9007199254740991", "9007199254740992"]],
    ["9007199254740993", ["9007199254740993", "9007199254740994"]],
    ["725653563933458433", ["725653563933458433", "725653563933458434"]],
    ["9223372036854775807", ["9223372036854775807", "9223372036854775808"]],
    ["-9223372036854775807", ["-9223372036854775807", "-9223372036854775807"]]
  ]

  it.live("keeps every digit of its seed", () =>
    Gateway.runHere({ ...options, services: ["video"] }, async (gateway) => {
      const client = new VideoClient(gateway)
      for (const [seed, sent] of seeds) {
        const before = gateway.provider.requests.length
        const task = await client.untilEnded(
          await client.create({ ...wish, seed: ExactJson.fromBigInt(BigInt(seed)), n: 2 })
        )
        assert.deepInclude(task, { status: "completed", error: null })
        const submitted = gateway.provider.requests.slice(before)
          .filter(({ path }) => path.endsWith("/video-synthesis"))
          .map(({ body }) => /"seed":([^,}]*)/.exec(body.toString())?.[1])
        assert.sameMembers(submitted, [...sent])
        // rather none than a wrong one
        const shown = Number.isSafeInteger(Number(seed)) && Number(seed) >= 0 ? Number(seed) : null
        assert.strictEqual(task.metadata?.seed, shown)
      }
    }))

  it.live(
    "of several videos is submitted once for each, with the next seed and what only the provider knows",
    () =>
      Gateway.runHere({ ...options, services: ["video"] }, async (gateway) => {
        const client = new VideoClient(gateway)
        const far = { width: 3840, height: 2160, duration: 30, response_format: "webm" }
        for (const [seed, sent] of [[7, [7, 8]], [-1, [-1, -1]]] as const) {
          const before = gateway.provider.requests.length
          const task = await client.untilEnded(await client.create({ ...wish, ...far, seed, n: 2 }))
          assert.deepInclude(task, { status: "completed", error: null })
          assert.deepStrictEqual(task.data.map(({ metadata }) => metadata.duration), [2, 2])
          const submitted = gateway.provider.requests.slice(before)
            .filter(({ path }) => path.endsWith("/video-synthesis"))
            .map(({ json }) => (json as { readonly parameters: { readonly seed: number } }).parameters)
          assert.sameDeepMembers(
            submitted,
            sent.map((seed) => ({ size: "3840*2160", duration: 30, response_format: "webm", seed }))
          )
        }
      })
  )

  it.live(
    "of several videos fails with one of them, and keeps the others",
    () =>
      Gateway.runHere({ ...options, services: ["video"] }, async (gateway) => {
        const client = new VideoClient(gateway)
        const failure = { code: "DataInspectionFailed", message: "no boats" }
        gateway.provider.behaveOnce({ kind: "task", looks: 1, failure })
        const task = await client.untilEnded(await client.create({ ...wish, n: 2 }))
        assert.deepInclude(task, { status: "failed" })
        assert.deepInclude(task.error, failure)
        assert.lengthOf(task.data, 1)
        const { pathname, search } = new URL(task.data[0]!.url)
        const file = await fetch(`${gateway.url}${pathname}${search}`)
        assert.strictEqual((await inspect(new Uint8Array(await file.arrayBuffer()))).frames, 16)
        assert.strictEqual(submissions(gateway), 2)
      })
  )

  it.live(
    "is submitted once when its worker is killed between submission and end",
    () =>
      Gateway.runHere({ ...options, wired: true }, async (gateway) => {
        const client = new VideoClient(gateway)
        const dying = await gateway.startWorker({}, "video")
        gateway.provider.behave({ kind: "task", looks: 1_000_000 })
        const id = await client.create(wish)
        const { providerTask } = await untilRecord(
          gateway.nats,
          id,
          (task) => (task.providerTask?.task ?? null) !== null
        )
        dying.kill()
        await expireClaims(gateway.nats, "video")
        const looked = looks(gateway)
        await gateway.startWorker({}, "video")
        const second = await untilRecord(gateway.nats, id, ({ claims }) => claims >= 2)
        assert.deepStrictEqual(second.providerTask, providerTask)
        // the other worker polls the same task
        await gateway.provider.until(() => looks(gateway) > looked)
        assert.strictEqual(submissions(gateway), 1)
        await client.request(`/${id}`, { method: "DELETE" })
        await untilNoJobs(gateway.nats, "video")
        assert.strictEqual(submissions(gateway), 1)
      })
  )

  it.live(
    "through a package of the AI SDK is one operation, whichever worker polls it",
    () =>
      Effect.gen(function*() {
        const provider = yield* veo
        const sdk = `{ protocol: ai-sdk, baseUrl: "${provider.baseUrl}", apiKey: ${providerKey}, ` +
          `options: { package: "@ai-sdk/google", pollIntervalMs: 20 } }`
        yield* Gateway.runHere({
          workers: 0,
          wired: true,
          providers: () => `  sdk: ${sdk}`,
          models: "  sdk-video: { workload: video, targets: [{ provider: sdk, model: veo }] }"
        }, async (gateway) => {
          const client = new VideoClient(gateway)
          const dying = await gateway.startWorker({}, "video")
          const id = await client.create({ ...wish, model: "sdk-video" })
          await untilRecord(gateway.nats, id, (task) => (task.providerTask?.task ?? null) !== null)
          dying.kill()
          await expireClaims(gateway.nats, "video")
          await gateway.startWorker({}, "video")
          await untilRecord(gateway.nats, id, ({ claims }) => claims >= 2)
          provider.outcome = () => done(provider)
          const task = await client.untilEnded(id)
          assert.deepInclude(task, { status: "completed", error: null })
          assert.isTrue(clip.equals((await client.content(id)).bytes))
          assert.lengthOf(provider.started, 1)
          assert.deepStrictEqual(new Set(provider.polled), new Set(["/operations/1"]))
        })
      }).pipe(Effect.scoped)
  )

  for (const [provider, outcome] of [["free", "submitted again"], ["paid", "given up"]] as const) {
    it.live(
      `is ${outcome} when its worker is killed during submission to a ${provider} provider`,
      () =>
        Gateway.runHere({ ...options, wired: true }, async (gateway) => {
          const client = new VideoClient(gateway)
          const dying = await gateway.startWorker({}, "video")
          gateway.provider.behaveOnce({ kind: "silent" })
          const id = await client.create({ ...wish, model: `${provider}-video` })
          await gateway.provider.until(() => submissions(gateway) === 1)
          dying.kill()
          await expireClaims(gateway.nats, "video")
          await gateway.startWorker({}, "video")
          const task = await client.untilEnded(id)
          if (provider === "free") {
            assert.deepInclude(task, { status: "completed", error: null })
            assert.strictEqual(submissions(gateway), 2)
          } else {
            assert.strictEqual(task.status, "failed")
            assert.deepInclude(task.error, {
              code: "upstream_error",
              message: "The provider 'video-paid' may have started the work without confirming it; " +
                "the gateway did not retry, to avoid paying twice"
            })
            assert.strictEqual(submissions(gateway), 1)
          }
          await untilNoJobs(gateway.nats, "video")
        })
    )
  }

  it.live(
    "is cancelled at the provider when the client cancels it",
    () =>
      Gateway.runHere({ ...options, services: ["video"] }, async (gateway) => {
        const client = new VideoClient(gateway)
        gateway.provider.behave({ kind: "task", looks: 1_000_000 })
        const id = await client.create(wish)
        await untilRecord(gateway.nats, id, (task) => (task.providerTask?.task ?? null) !== null)
        await client.request(`/${id}`, { method: "DELETE" })
        await gateway.provider.until(() => gateway.provider.requests.some(({ path }) => path.endsWith("/cancel")))
        await untilNoJobs(gateway.nats, "video")
        assert.strictEqual((await client.show(id)).status, "cancelled")
      })
  )
})
