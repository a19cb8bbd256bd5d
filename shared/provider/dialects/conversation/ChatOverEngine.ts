/** Serves a chat dialect with a `ChatEngine`. */
import { Effect, Exit, Stream } from "effect"
import { InternalError, type JobError } from "../../../contract/JobError.ts"
import { isReported, type Usage } from "../../../contract/Usage.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import { type Sink, writeAll } from "../../transport/Sink.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import * as ClientRequest from "./ClientRequest.ts"
import type { Conversation } from "./Conversation.ts"
import { type ClientDialect, newIdentity } from "./Dialect.ts"
import type { Losses } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import * as TextUsage from "./TextUsage.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"

const utf8 = new TextEncoder()

export interface ChatRequest {
  readonly conversation: Conversation
  readonly call: Call
  /** The engine records here, before its first event, what it cannot carry out. */
  readonly losses: Losses
}

/** Answers conversations, independent of the client's dialect. */
export type ChatEngine = (request: ChatRequest) => Stream.Stream<ModelEvent, JobError>

export interface EngineOptions {
  /** `system_fingerprint` of the answer. */
  readonly fingerprint: string | undefined
  /** Whether the engine ignores what it does not support instead of refusing it. */
  readonly isLenient: boolean
}

/** Returns the dialect's operation with its implementation. */
export const make = <Request>(
  engine: ChatEngine,
  dialect: ClientDialect<Request>,
  { fingerprint, isLenient }: EngineOptions
): readonly [string, Perform] => {
  const decode = ClientRequest.decoder(dialect, isLenient ? "lenient" : "ordinary")
  const perform: Perform = Effect.fnUntraced(function*(call, sink) {
    const { conversations, losses, request } = yield* decode(call)
    const encoder = dialect.encoder(request, yield* newIdentity(call.answersAs, fingerprint))
    yield* losses.failIfRefused
    const events = answerAll(engine, conversations.map((conversation) => ({ conversation, call, losses })))
    const start = (contentType: string) =>
      sink.start({ status: 200, contentType, headers: TranslationWarnings.toHeaders(losses.warnings) })
    const isTextRequest = TextUsage.isText(conversations)
    let hasMedia = false
    let usage: Usage | undefined
    const note = (event: ModelEvent): ModelEvent => {
      hasMedia ||= event.type === "media"
      if (event.type !== "usage") return event
      usage = TextUsage.complete(event.usage, isTextRequest, !hasMedia)
      return { type: "usage", usage }
    }
    if (!dialect.streams(request)) {
      const all = (yield* Stream.runCollect(events)).map(note)
      start("application/json")
      sink.write(utf8.encode(JSON.stringify(encoder.body(all))))
      return usage
    }
    const frames = Stream.map(events, (received) => {
      const event = note(received)
      // starts with the first event: until then a failure can still set the status
      if (!sink.hasStarted) start("text/event-stream")
      return utf8.encode(encoder.frames(event))
    })
    yield* writeAll(sink, inTime(frames, call, sink))
    if (!sink.hasStarted) return yield* new InternalError()
    sink.write(utf8.encode(encoder.lastFrames()))
    return usage
  })
  return [dialect.operation, perform]
}

/** Fails if the answer has not started within `firstTokenMs`. */
const inTime = (
  frames: Stream.Stream<Uint8Array, JobError>,
  { endpoint }: Call,
  sink: Sink
): typeof frames => {
  const { firstTokenMs } = Endpoint.timeoutsOf(endpoint, { streams: true })
  return firstTokenMs === undefined
    ? frames
    : Stream.interruptWhen(
      frames,
      Effect.flatMap(
        Effect.sleep(firstTokenMs),
        () =>
          sink.hasStarted ? Effect.never : Effect.fail(Endpoint.timedOut(endpoint, "first token", { streams: true }))
      )
    )
}

/** Answers the conversations one after the other, as one answer: numbers the choices consecutively and adds up usage. */
const answerAll = (engine: ChatEngine, requests: ReadonlyArray<ChatRequest>): ReturnType<ChatEngine> => {
  const [first] = requests
  if (first !== undefined && requests.length === 1) return engine(first)
  let choicesBefore = 0
  let usage = UsageSum.none
  const onCut = (part: Usage) => {
    usage = UsageSum.sum(usage, part)
  }
  const answers = Stream.flatMap(Stream.fromIterable(requests), (request) => {
    const offset = choicesBefore
    choicesBefore += request.conversation.choices
    return engine({ ...request, call: { ...request.call, onCut } }).pipe(
      Stream.map((event) => {
        if (event.type !== "usage") return { ...event, choice: offset + event.choice }
        usage = UsageSum.sum(usage, event.usage)
        return event
      }),
      Stream.filter((event) => event.type !== "usage")
    )
  })
  return Stream.concat(answers, Stream.sync((): ModelEvent => ({ type: "usage", usage }))).pipe(
    Stream.onExit((exit) =>
      Effect.sync(() => Exit.isFailure(exit) && isReported(usage) ? first?.call.onCut?.(usage) : undefined)
    )
  )
}
