/**
 * The `ai-sdk` protocol: less common providers, mainly of pictures, sound and videos, through packages of the AI SDK.
 * The catalogue names the package, and the operator installs it. `AiSdkVideo.ts` makes videos.
 *
 * The gateway calls a package's model objects directly. It does not use the rest of the SDK, which has its own rules for
 * retries and downloads.
 */
import { Effect } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import { audioSpeech } from "../../../contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../contract/operations/audio/Transcriptions.ts"
import { rerank } from "../../../contract/operations/Rerank.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import * as CountDialects from "../../dialects/CountDialects.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import type { Dependencies } from "../../dialects/images/ImageAnswer.ts"
import * as Images from "../../dialects/images/Images.ts"
import { type Calls, type CountCalls, oneCall } from "../../call/Calls.ts"
import { type Call, type Perform, performByName } from "../../call/Protocol.ts"
import * as AiSdkChat from "./AiSdkChat.ts"
import * as AiSdkEmbed from "./AiSdkEmbed.ts"
import * as AiSdkImages from "./AiSdkImages.ts"
import { opener, type PackageTools } from "./AiSdkPackage.ts"
import * as AiSdkRerank from "./AiSdkRerank.ts"
import * as AiSdkSpeech from "./AiSdkSpeech.ts"
import * as AiSdkTranscription from "./AiSdkTranscription.ts"

/** The names of the operations; a package may serve fewer. */
export const operations = [
  ...ClientDialects.operations,
  ...CountDialects.operations,
  ...Images.operations,
  ...Embeddings.operations,
  rerank.name,
  audioSpeech.name,
  transcriptions.name
]

/** The calls of the protocol, and their number. */
export const make = (
  dependencies: Dependencies & PackageTools
): { readonly perform: Perform; readonly countCalls: CountCalls } => {
  const open = opener(dependencies)
  const chat = performByName(AiSdkChat.performs(open, dependencies.guard))
  const media = performByName(
    new Map([
      ...Images.performs(AiSdkImages.make(open, dependencies.guard), dependencies),
      ...Embeddings.performs(AiSdkEmbed.make(open)),
      [rerank.name, AiSdkRerank.make(open)],
      [audioSpeech.name, AiSdkSpeech.make(open)],
      [transcriptions.name, AiSdkTranscription.make(open)]
    ])
  )
  const isOfChat = ({ workload }: Call) => workload === "chat"
  const countCalls = (call: Call): Effect.Effect<Calls, JobError> => {
    if (isOfChat(call)) return Effect.succeed(AiSdkChat.callsOf(call))
    const { name } = call.operation
    if (Images.operations.includes(name)) return AiSdkImages.callsOf(call, open)
    return Embeddings.operations.includes(name) ? AiSdkEmbed.callsOf(call, open) : Effect.succeed(oneCall)
  }
  return {
    perform: (call, sink) => (isOfChat(call) ? chat : media)(call, sink),
    countCalls: (call) => Effect.orElseSucceed(countCalls(call), () => oneCall)
  }
}
