/** Offers the built-in chat engine to the `local` protocol, in every chat dialect. */
import { Effect, Layer, Stream, Struct } from "effect"
import { InvalidRequest, type JobError } from "../../shared/contract/JobError.ts"
import { compaction } from "../../shared/contract/operations/Compaction.ts"
import * as ClientDialects from "../../shared/provider/dialects/ClientDialects.ts"
import { settings as chatSettings } from "../../shared/provider/dialects/openai/ChatCompletionsRequest.ts"
import type { Losses } from "../../shared/provider/dialects/conversation/Losses.ts"
import * as ChatOverEngine from "../../shared/provider/dialects/conversation/ChatOverEngine.ts"
import * as Counts from "../../shared/provider/dialects/counting/Counts.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import * as Options from "../../shared/provider/call/Options.ts"
import * as Compact from "./Compact.ts"
import * as CompactByModel from "./CompactByModel.ts"
import * as ItemsInChat from "./ItemsInChat.ts"
import { Compactions } from "./state/Compactions.ts"
import { countInput, LocalChat, LocalChatOptions } from "./LocalChat.ts"
import { extract } from "./Summary.ts"
import * as Unread from "./Unread.ts"

const decodeOptions = Options.reader(LocalChatOptions)
const settings = { fingerprint: "local-echo", isLenient: true }

/** Counts input tokens as the engine's answers report them. */
const count: Counts.Counter = ({ conversation }) =>
  Effect.map(countInput(conversation), (tokens) => ({ tokens, isEstimate: false }))

/** Renames the setting in an error: the engine uses the names of chat completions, the client those of its dialect. */
const withClientsName = (error: JobError, losses: Losses): JobError => {
  if (error._tag !== "InvalidRequest") return error
  const setting = Struct.keys(chatSettings).find((setting) => chatSettings[setting] === error.param)
  if (setting === undefined || error.param === null) return error
  const param = losses.nameOf(setting)
  return new InvalidRequest({ message: error.message.replace(error.param, param), param, code: error.code })
}

export const layerNoDeps = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const { answer } = yield* LocalChat
    const compactions = yield* Compactions
    const engine: ChatOverEngine.ChatEngine = ({ call, conversation, losses }) => {
      Unread.record(conversation, losses)
      return Stream.unwrap(
        Effect.map(
          Effect.andThen(losses.failIfRefused, decodeOptions(call.endpoint)),
          (options) => answer(conversation, options)
        )
      ).pipe(Stream.mapError((error) => withClientsName(error, losses)))
    }
    return LocalEngines.of({
      performs: new Map([
        ...ClientDialects.map((dialect) => ChatOverEngine.make(engine, dialect, settings)),
        ...Counts.performs(count, "lenient"),
        [compaction.name, Compact.make(compactions, extract)]
      ]),
      around: (perform) => ItemsInChat.around(CompactByModel.around(compactions)(perform))
    })
  })
)

export const layer = layerNoDeps.pipe(Layer.provide([LocalChat.layer, Compactions.layer]))
