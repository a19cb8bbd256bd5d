/** Serves a chat dialect with an engine that knows only conversations and events. */
import { Clock, Effect, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { InternalError, type JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { ChatEngine } from "./ChatEngine.ts"
import type { Perform } from "../Protocol.ts"
import { writeAll } from "../Sink.ts"
import * as TranslationWarnings from "../TranslationWarnings.ts"
import * as ClientRequest from "./ClientRequest.ts"
import type { Conversation } from "./Conversation.ts"
import type { AnswerIdentity, ClientDialect } from "./Dialect.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import * as TokenCount from "./TokenCount.ts"

const utf8 = new TextEncoder()

/** `fingerprint` tells clients what answered. */
export const make = <Request>(
  engine: ChatEngine,
  dialect: ClientDialect<Request>,
  fingerprint: string
): Perform => {
  // a built-in engine takes what it can of a request
  const decode = ClientRequest.decoder(dialect, "lenient")
  return Effect.fnUntraced(function*(call, sink) {
    const { conversations, losses, request } = yield* decode(call)
    const identity: AnswerIdentity = {
      id: randomUUID().replaceAll("-", ""),
      created: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
      model: call.model,
      fingerprint
    }
    const encoder = dialect.encoder(request, identity)
    yield* losses.verdict
    const events = answerAll(engine, conversations, call.endpoint.provider.options ?? {})
    const headers = TranslationWarnings.toHeaders(losses.warnings)
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
  let usage = TokenCount.none
  const answers = Stream.flatMap(Stream.fromIterable(conversations), (conversation) => {
    const offset = choicesBefore
    choicesBefore += conversation.choices
    return engine.answer(conversation, options).pipe(
      Stream.map((event) => {
        if (event.type !== "usage") return { ...event, choice: offset + event.choice }
        usage = TokenCount.sum(usage, event.usage)
        return event
      }),
      Stream.filter((event) => event.type !== "usage")
    )
  })
  return Stream.concat(answers, Stream.sync((): ModelEvent => ({ type: "usage", usage })))
}
