/** Offers the built-in chat engine to the `local` protocol, in every chat dialect. */
import { Effect, Layer, Stream } from "effect"
import { compaction } from "../../shared/contract/operations/Compaction.ts"
import { chatCompletions } from "../../shared/provider/dialects/openai/ChatCompletions.ts"
import type { ChatEngine } from "../../shared/provider/dialects/conversation/ChatEngine.ts"
import * as ChatOverEngine from "../../shared/provider/dialects/conversation/ChatOverEngine.ts"
import { completions } from "../../shared/provider/dialects/openai/Completions.ts"
import { generateContent, streamGenerateContent } from "../../shared/provider/dialects/gemini/GenerateContent.ts"
import { messages } from "../../shared/provider/dialects/anthropic/Messages.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import * as Options from "../../shared/provider/call/Options.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import * as Compact from "./Compact.ts"
import { Compactions } from "./Compactions.ts"
import { LocalChat, LocalChatOptions } from "./LocalChat.ts"

const optionsOf = Options.reader(LocalChatOptions)

const engineOf = (engine: LocalChat["Service"]): ChatEngine => ({
  answer: ({ call, conversation }) =>
    Stream.unwrap(Effect.map(optionsOf(call.endpoint), (options) => engine.answer(conversation, options)))
})

const options = { fingerprint: "local-echo", isLenient: true }

export const layer = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const engine = engineOf(yield* LocalChat)
    const compactions = yield* Compactions
    return LocalEngines.of({
      warmUp: Effect.asVoid(loadTokenizer),
      performs: new Map([
        ChatOverEngine.make(engine, chatCompletions, options),
        ChatOverEngine.make(engine, completions, options),
        ChatOverEngine.make(engine, messages, options),
        ChatOverEngine.make(engine, generateContent, options),
        ChatOverEngine.make(engine, streamGenerateContent, options),
        [compaction.name, Compact.make(compactions)]
      ])
    })
  })
).pipe(Layer.provide([LocalChat.layer, Compactions.layer]))
