/** Offers the built-in chat engine to the `local` protocol, in every chat dialect. */
import { Effect, Layer, Stream } from "effect"
import { compaction } from "../../shared/contract/operations/Compaction.ts"
import * as ClientDialects from "../../shared/provider/dialects/ClientDialects.ts"
import * as ChatOverEngine from "../../shared/provider/dialects/conversation/ChatOverEngine.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import * as Options from "../../shared/provider/call/Options.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import * as Compact from "./Compact.ts"
import { Compactions } from "./Compactions.ts"
import { LocalChat, LocalChatOptions } from "./LocalChat.ts"

const decodeOptions = Options.reader(LocalChatOptions)
const settings = { fingerprint: "local-echo", isLenient: true }

export const layer = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const { answer } = yield* LocalChat
    const compactions = yield* Compactions
    const engine: ChatOverEngine.ChatEngine = ({ call, conversation }) =>
      Stream.unwrap(Effect.map(decodeOptions(call.endpoint), (options) => answer(conversation, options)))
    return LocalEngines.of({
      warmUp: Effect.asVoid(loadTokenizer),
      performs: new Map([
        ...ClientDialects.map((dialect) => ChatOverEngine.make(engine, dialect, settings)),
        [compaction.name, Compact.make(compactions)]
      ])
    })
  })
).pipe(Layer.provide([LocalChat.layer, Compactions.layer]))
