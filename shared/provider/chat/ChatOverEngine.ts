/** Serves a chat dialect with an engine that knows only conversations and events. */
import { Clock, Effect, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { InternalError, type JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { ChatEngine } from "./ChatEngine.ts"
import { decoder } from "../local/RequestBody.ts"
import type { Perform } from "../Protocol.ts"
import { writeAll } from "../Sink.ts"
import * as TranslationWarnings from "../TranslationWarnings.ts"
import type { Conversation } from "./Conversation.ts"
import type { AnswerIdentity, Dialect } from "./Dialect.ts"
import type { ModelEvent } from "./ModelEvent.ts"

const utf8 = new TextEncoder()

/** `fingerprint` tells clients what answered. */
export const make = <Request>(
  engine: ChatEngine,
  dialect: Dialect<Request>,
  fingerprint: string
): Perform => {
  const decode = decoder(dialect.request)
  return Effect.fnUntraced(function*(call, sink) {
    const request = yield* decode(call)
    const identity: AnswerIdentity = {
      id: randomUUID().replaceAll("-", ""),
      created: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
      model: call.model,
      fingerprint
    }
    const encoder = dialect.encoder(request, identity)
    const conversations = [dialect.toConversation(request)].flat()
    const events = answerAll(engine, conversations, call.endpoint.provider.options ?? {})
    const headers = TranslationWarnings.toHeaders(dialect.warnings?.(request) ?? [])
    let usage: Usage | undefined
    const note = (event: ModelEvent): void => {
      if (event.type === "usage") usage = event.usage
    }
    if (!dialect.streams(request)) {
      const all = yield* Stream.runCollect(events)
      for (const event of all) note(event)
      sink.start({ status: 200, contentType: "application/json", headers })
      sink.write(utf8.encode(JSON.stringify(encoder.body(all))))
      return usage
    }
    const frames = Stream.map(events, (event) => {
      note(event)
      // not before the first event: until then a failure can still be told by a status
      if (!sink.started) sink.start({ status: 200, contentType: "text/event-stream", headers })
      return utf8.encode(encoder.frames(event))
    })
    yield* writeAll(sink, frames)
    if (!sink.started) return yield* new InternalError()
    sink.write(utf8.encode(encoder.lastFrames()))
    return usage
  })
}

/** The answers to one conversation after the other as one answer: choices are numbered through, usage is added up. */
const answerAll = (
  engine: ChatEngine,
  conversations: ReadonlyArray<Conversation>,
  options: Readonly<Record<string, unknown>>
): Stream.Stream<ModelEvent, JobError> => {
  const [first] = conversations
  if (first !== undefined && conversations.length === 1) return engine.answer(first, options)
  let choicesBefore = 0
  let usage: Usage = { inputTokens: 0, outputTokens: 0 }
  const answers = Stream.flatMap(Stream.fromIterable(conversations), (conversation) => {
    const offset = choicesBefore
    choicesBefore += conversation.choices
    return engine.answer(conversation, options).pipe(
      Stream.map((event) => {
        if (event.type !== "usage") return { ...event, choice: offset + event.choice }
        usage = add(usage, event.usage)
        return event
      }),
      Stream.filter((event) => event.type !== "usage")
    )
  })
  return Stream.concat(answers, Stream.sync((): ModelEvent => ({ type: "usage", usage })))
}

const add = (one: Usage, other: Usage): Usage => ({
  inputTokens: one.inputTokens + other.inputTokens,
  outputTokens: one.outputTokens + other.outputTokens,
  cachedTokens: (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0),
  reasoningTokens: (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0)
})
