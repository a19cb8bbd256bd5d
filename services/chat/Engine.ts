/** Offers the built-in chat engine to the `local` protocol, in every chat dialect. */
import { Effect, Layer, Schema, Stream } from "effect"
import { compaction } from "../../shared/contract/Compaction.ts"
import { InternalError } from "../../shared/contract/JobError.ts"
import { chatCompletions } from "../../shared/provider/chat/ChatCompletions.ts"
import type { ChatEngine } from "../../shared/provider/chat/ChatEngine.ts"
import * as ChatOverEngine from "../../shared/provider/chat/ChatOverEngine.ts"
import { completions } from "../../shared/provider/chat/Completions.ts"
import type { ClientDialect } from "../../shared/provider/chat/Dialect.ts"
import { generateContent, streamGenerateContent } from "../../shared/provider/chat/GenerateContent.ts"
import { messages } from "../../shared/provider/chat/Messages.ts"
import { LocalEngines } from "../../shared/provider/Local.ts"
import type { Perform } from "../../shared/provider/Protocol.ts"
import * as Compact from "./Compact.ts"
import { Compactions } from "./Compactions.ts"
import { LocalChat, LocalChatOptions } from "./LocalChat.ts"

const decodeOptions = Schema.decodeUnknownEffect(LocalChatOptions)

const engineOf = (engine: LocalChat["Service"]): ChatEngine => ({
  answer: (conversation, options) =>
    Stream.unwrap(
      decodeOptions(options).pipe(
        Effect.tapError((error) => Effect.logError("the catalogue's options for the chat engine: " + error.message)),
        Effect.mapBoth({
          onSuccess: (decoded) => engine.answer(conversation, decoded),
          onFailure: () => new InternalError()
        })
      )
    )
})

const fingerprint = "local-extractive"

export const layer = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const engine = engineOf(yield* LocalChat)
    const compactions = yield* Compactions
    const speaking = <Request>(dialect: ClientDialect<Request>): readonly [string, Perform] => [
      dialect.operation,
      ChatOverEngine.make(engine, dialect, fingerprint)
    ]
    return LocalEngines.of({
      performs: new Map([
        speaking(chatCompletions),
        speaking(completions),
        speaking(messages),
        speaking(generateContent),
        speaking(streamGenerateContent),
        [compaction.name, Compact.make(compactions)]
      ])
    })
  })
).pipe(Layer.provide([LocalChat.layer, Compactions.layer]))
