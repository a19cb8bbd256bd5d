/**
 * Serves every chat dialect with AI SDK packages, through canonical conversations and events. The model always streams.
 * Features that the SDK's interface lacks, such as log probabilities, are lost.
 */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { ProviderFailed } from "../../../contract/JobError.ts"
import { choicesOf } from "../../../contract/TokenEstimate.ts"
import { isReported } from "../../../contract/Usage.ts"
import * as TraceParent from "../../../telemetry/TraceParent.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import * as ChatOverEngine from "../../dialects/conversation/ChatOverEngine.ts"
import * as ToolNames from "../../dialects/fitting/ToolNames.ts"
import * as Counts from "../../dialects/counting/Counts.ts"
import * as TokenizerCount from "../../dialects/counting/TokenizerCount.ts"
import * as InlineMedia from "../../dialects/conversation/InlineMedia.ts"
import type { ModelEvent } from "../../dialects/conversation/ModelEvent.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import { Commitment } from "../../transport/Commitment.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import * as EstimatedUsage from "../../call/EstimatedUsage.ts"
import { type Calls, oneCall } from "../../call/Calls.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import * as JsonText from "../../json/JsonText.ts"
import { failureOf } from "./AiSdkCall.ts"
import { Events } from "./AiSdkEvents.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"
import { settings, toOptions } from "./AiSdkPrompt.ts"

/** Maximum number of choices per conversation: each is a separate call. */
const maxChoices = 8

/** The calls of a request: for the choices of one prompt at a time. A request for too many choices is refused. */
export const callsOf = ({ body }: Pick<Call, "body">): Calls => {
  const { choices, prompts } = choicesOf(JsonText.fieldsOf(body))
  return choices > maxChoices ? oneCall : { all: prompts * choices, atOnce: choices }
}

const options = { fingerprint: undefined, isLenient: false }

/** The chat operations, by name. */
export const performs = (open: Opener, guard: GuardedFetch["Service"]): ReadonlyMap<string, Perform> => {
  const engine: ChatOverEngine.ChatEngine = (request) => Stream.unwrap(answer(open, guard, request))
  return new Map([
    ...ClientDialects.map((dialect) => ChatOverEngine.make(engine, dialect, options)),
    ...Counts.performs(TokenizerCount.count, "ordinary")
  ])
}

/** Makes a concurrent call for each choice. Usage follows once all calls have ended. */
const answer = Effect.fnUntraced(function*(
  open: Opener,
  guard: GuardedFetch["Service"],
  { call, conversation, losses }: ChatOverEngine.ChatRequest
) {
  const { endpoint } = call
  const opened = yield* open(endpoint)
  const model = yield* modelOf("language", opened, endpoint, call)
  const { choices } = conversation
  if (choices > maxChoices) losses.refuseOf("choices", `must be at most ${maxChoices} for this model`)
  const version = model.specificationVersion === "v3" ? "v3" : "v4"
  const inlined = yield* InlineMedia.inline(conversation, () => true, guard)
  const { conversation: fitted, originals } = ToolNames.fit(inlined, ToolNames.openAiNames)
  const prompt = toOptions(fitted, version, losses)
  yield* losses.failIfRefused
  const traceparent = yield* TraceParent.current

  const failed = (reason: "cut" | "error" | "result") => new ProviderFailed({ provider: endpoint.name, reason })
  const failWith = (error: unknown) => Effect.flatMap(failureOf(endpoint.name, error, opened.secrets), Effect.fail)

  const stream = Effect.fnUntraced(function*(choice: number) {
    yield* Effect.flatten(Commitment)
    const abortSignal = yield* Effect.abortSignal
    const timer = yield* Effect.forkScoped(Effect.sleep(Endpoint.timeoutsOf(endpoint).totalMs))
    // fails by itself at the deadline, because the package may ignore the signal
    const failAtDeadline = Effect.andThen(
      Fiber.join(timer),
      Effect.fail(Endpoint.timedOut(endpoint, "total"))
    )
    const { stream } = yield* Effect.tryPromise(() =>
      model.doStream({
        ...prompt,
        // with the same seed, all choices would be equal
        ...(prompt.seed === undefined ? {} : { seed: prompt.seed + choice }),
        abortSignal,
        headers: traceparent === undefined ? {} : { traceparent },
        providerOptions: providerOptions(opened, model, {})
      })
    ).pipe(
      Effect.catch(({ cause }) => failWith(cause)),
      Effect.raceFirst(failAtDeadline)
    )
    const events = new Events(choice)
    const take = Effect.fnUntraced(function*(part: LanguageModelV4StreamPart) {
      if (part.type === "stream-start") {
        for (const feature of lostFeatures(part.warnings)) {
          const setting = settings[feature]
          if (setting === undefined) losses.warn(feature)
          else losses.warnOf(setting)
        }
        yield* losses.failIfRefused
      }
      const taken = events.take(part)
      if ("error" in taken) return yield* taken.error === undefined ? failed("error") : failWith(taken.error)
      return taken.isElsewhere === true
        ? yield* failed("result")
        : taken.events.map((event) => ToolNames.restored(event, originals))
    })
    const onError = (error: unknown) => new Cause.UnknownError(error)
    const parts = Stream.fromReadableStream({ evaluate: () => stream, onError }).pipe(
      Stream.catch(({ cause }) => Stream.fromEffect(failWith(cause))),
      Stream.mapEffect(take),
      Stream.flattenIterable,
      Stream.interruptWhen(failAtDeadline)
    )
    const whole = Stream.suspend(() => events.isComplete ? Stream.empty : Stream.fail(failed("cut")))
    return { events, stream: Stream.concat(parts, whole) }
  })

  const answers = yield* Effect.forEach(Array.from({ length: choices }, (_, index) => index), stream, {
    concurrency: "unbounded"
  })
  const usageOf = ({ textBytes, usage }: Events) =>
    isReported(usage) ? usage : EstimatedUsage.ofSizes(EstimatedUsage.textBytes(conversation), textBytes)
  const total = () => answers.reduce((sum, { events }) => UsageSum.sum(sum, usageOf(events)), UsageSum.none)
  /** The usage of the choices whose provider has reported it. */
  const reported = () =>
    answers.map(({ events }) => events.usage).filter(isReported).reduce(UsageSum.sum, UsageSum.none)
  const usage = Stream.sync((): ModelEvent => ({ type: "usage", usage: total() }))
  const all = Stream.mergeAll(answers.map(({ stream }) => stream), { concurrency: "unbounded" })
  return Stream.concat(all, usage).pipe(
    Stream.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) return
        // the work for a client that disconnects is estimated; that for a failed answer is not
        const spent = Cause.hasInterruptsOnly(exit.cause) ? total() : reported()
        if (isReported(spent)) call.onCut?.(spent)
      })
    )
  )
})
