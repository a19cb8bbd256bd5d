/**
 * The `ai-sdk` protocol: less common providers, mainly of pictures, sound and videos, through packages of the AI SDK.
 * The catalogue names the package, and the operator installs it. `AiSdkVideo.ts` makes videos.
 *
 * The gateway calls a package's model objects directly. It does not use the rest of the SDK, which has its own rules for
 * retries and downloads.
 */
import { audioSpeech } from "../../../contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../contract/operations/audio/Transcriptions.ts"
import { rerank } from "../../../contract/operations/Rerank.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import * as CountDialects from "../../dialects/CountDialects.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import type { Dependencies } from "../../dialects/images/ImageAnswer.ts"
import * as Images from "../../dialects/images/Images.ts"
import { type Perform, performByName } from "../../call/Protocol.ts"
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

export const make = (dependencies: Dependencies & PackageTools): Perform => {
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
  return (call, sink) => (call.workload === "chat" ? chat : media)(call, sink)
}
