/** Makes videos by the `dashscope` protocol: submits a task, polls it until it has ended, and fetches its video. */
import { Effect, Predicate, Schema } from "effect"
import { InternalError, type JobError, ProviderFailed, ProviderRejected } from "../../../contract/JobError.ts"
import { extentOf } from "../../../contract/operations/LocalVideo.ts"
import { urlOf } from "../../dialects/images/ImageSource.ts"
import type { GuardedTools } from "../../exchange/Exchange.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import * as Options from "../../call/Options.ts"
import * as Polling from "../../exchange/Polling.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import * as VideoFile from "../../call/VideoFile.ts"
import {
  createWithinMs,
  formatParameter,
  lostAtProviders,
  type Video,
  type VideoCall,
  type VideoEngine,
  type VideoRequest
} from "../../call/VideoEngine.ts"

/** The catalogue's options. */
export const DashScopeOptions = Schema.Struct({
  /** The time between two polls of a task, in milliseconds. Default 5,000. */
  pollIntervalMs: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
})

const optionsOf = Options.reader(DashScopeOptions)

// Paths

const createPath = "/api/v1/services/aigc/video-generation/video-synthesis"
const taskPath = (id: string): string => `/api/v1/tasks/${encodeURIComponent(id)}`

// Request

/** A group of models with the same parameters. */
interface Family {
  readonly names: RegExp
  /** Whether the models take the size as a tier and a ratio instead of pixels. */
  readonly tiered: boolean
  readonly picture: (url: string) => object
}

const imageUrl = (url: string) => ({ img_url: url })

const families: ReadonlyArray<Family> = [
  { names: /^wan3/, tiered: true, picture: (url) => ({ media: [{ type: "first_frame", url }] }) },
  { names: /^wan2\.7/, tiered: true, picture: imageUrl }
]
const usual: Family = { names: /^/, tiered: false, picture: imageUrl }

const familyOf = ({ model }: Endpoint): Family => families.find(({ names }) => names.test(model)) ?? usual

const tiers = [480, 720, 1080]
const ratios: ReadonlyArray<readonly [width: number, height: number]> = [[16, 9], [9, 16], [1, 1], [4, 3], [3, 4]]

/** A video from a picture keeps the picture's ratio. */
const sizeOf = (request: VideoRequest, { tiered }: Family, hasPicture: boolean) => {
  if (typeof request.width !== "number" && typeof request.height !== "number") return { parameters: {}, warnings: [] }
  const { height, width } = extentOf(request)
  if (!tiered && !hasPicture) return { parameters: { size: `${width}*${height}` }, warnings: [] }
  const shorter = Math.min(width, height)
  // a larger size is the model's to accept or reject
  const tier = tiers.find((side) => shorter <= side) ?? shorter
  const ratio = hasPicture ? undefined : ratios.find(([across, down]) => width * down === height * across)
  const isExact = shorter === tier && ratio !== undefined
  return {
    parameters: { resolution: `${tier}P`, ...(ratio === undefined ? {} : { ratio: ratio.join(":") }) },
    warnings: isExact ? [] : ["width", "height"]
  }
}

/** The parameters that only the model knows: `metadata` without its known fields. */
const known = new Set(["negative_prompt", "style", "quality_level"])
const ownParameters = ({ metadata }: VideoRequest) => unknownFields(metadata, known)

const toBody = Effect.fnUntraced(function*({ endpoint, request }: VideoCall) {
  const { duration, image, metadata, prompt, seed } = request
  const family = familyOf(endpoint)
  const hasPicture = typeof image === "string"
  const { style, negative_prompt: negativePrompt } = metadata ?? {}
  return {
    model: endpoint.model,
    input: {
      prompt: typeof style === "string" ? `${prompt}, ${style}` : prompt,
      ...(typeof negativePrompt === "string" ? { negative_prompt: negativePrompt } : {}),
      ...(hasPicture ? family.picture(yield* urlOf({ content: image, param: "image" })) : {})
    },
    parameters: {
      ...ownParameters(request),
      ...formatParameter(request),
      ...sizeOf(request, family, hasPicture).parameters,
      ...(typeof duration === "number" ? { duration } : {}),
      ...(Predicate.isNotNullish(seed) ? { seed } : {})
    }
  }
})

const lost = ({ endpoint, request }: VideoCall): ReadonlyArray<string> => [
  ...sizeOf(request, familyOf(endpoint), typeof request.image === "string").warnings,
  ...(typeof request.fps === "number" ? ["fps"] : []),
  ...lostAtProviders(request)
]

// Answer

const Created = Schema.Struct({ output: Schema.Struct({ task_id: Schema.NonEmptyString }) })

const Polled = Schema.Struct({
  output: Schema.Struct({
    task_status: Schema.String,
    video_url: Schema.optionalKey(Schema.NullOr(Schema.String)),
    code: Schema.optionalKey(Schema.NullOr(Schema.String)),
    message: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
})

type PolledTask = typeof Polled.Type["output"]

const DashScopeTask = Schema.Struct({ id: Schema.NonEmptyString })
const decodeTask = Schema.decodeUnknownEffect(DashScopeTask)
const taskIn = (task: unknown) => Effect.mapError(decodeTask(task), () => new InternalError())

const failed = ({ name: provider }: Endpoint) => new ProviderFailed({ provider, reason: "error" })

/** The error of a failed task. Only these codes are the provider's fault; all others are the request's. */
const failureOf = (endpoint: Endpoint, { code, message }: PolledTask): JobError =>
  /^(InternalError|ServiceUnavailable)/.test(code ?? "InternalError")
    ? failed(endpoint)
    : new ProviderRejected({
      provider: endpoint.name,
      status: 400,
      message: message ?? `The provider '${endpoint.name}' rejected the request`,
      code: code ?? null
    })

export const make = ({ guard, ...tools }: GuardedTools): VideoEngine => {
  const create = JsonExchange.make(tools, Created)
  const poll = JsonExchange.make(tools, Polled)
  const cancel = JsonExchange.make(tools, Schema.Unknown)

  const endOf = (call: VideoCall, output: PolledTask): Effect.Effect<Polling.Ended<Video>, JobError> => {
    switch (output.task_status) {
      case "SUCCEEDED":
        return Effect.succeedSome(VideoFile.fetch(guard, call, output.video_url, lost(call)))
      case "FAILED":
        return Effect.succeedSome(Effect.fail(failureOf(call.endpoint, output)))
      case "CANCELED":
        return Effect.succeedSome(Effect.fail(failed(call.endpoint)))
      case "UNKNOWN":
        // right after the submission DashScope may not know the task yet; if that lasts, the task is lost
        return Effect.fail(failed(call.endpoint))
      default:
        return Effect.succeedNone
    }
  }

  return {
    start: Effect.fnUntraced(function*(call) {
      const { output } = yield* create(call.endpoint, {
        path: createPath,
        headers: { "x-dashscope-async": "enable" },
        body: yield* toBody(call),
        withinMs: createWithinMs
      })
      return { id: output.task_id } satisfies typeof DashScopeTask.Type
    }),
    follow: Effect.fnUntraced(function*(call, task) {
      const { id } = yield* taskIn(task)
      const { pollIntervalMs = 5_000 } = yield* optionsOf(call.endpoint)
      const pollTask = poll(call.endpoint, { path: taskPath(id) }).pipe(
        Effect.flatMap(({ output }) => endOf(call, output))
      )
      return yield* Polling.untilEnded(pollTask, pollIntervalMs)
    }),
    // DashScope cancels only tasks that it has not begun
    cancel: Effect.fnUntraced(function*({ endpoint }, task) {
      const { id } = yield* taskIn(task)
      yield* cancel(endpoint, { path: `${taskPath(id)}/cancel`, body: {} })
    })
  }
}
