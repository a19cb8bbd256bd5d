/**
 * The `ai-sdk` protocol: the long tail of providers, of pictures, sounds and videos above all, through packages of the AI
 * SDK. The catalogue names the package, which the operator has installed; its model objects are called as they are. Videos
 * are in `AiSdkVideo.ts`.
 *
 * The rest of the SDK is not used: it retries and downloads by rules of its own.
 */
import { audioSpeech } from "../../../contract/operations/AudioSpeech.ts"
import { rerank } from "../../../contract/operations/Rerank.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import type { Means } from "../../dialects/images/ImageAnswer.ts"
import * as Images from "../../dialects/images/Images.ts"
import { type Perform, performByName } from "../../call/Protocol.ts"
import * as AiSdkChat from "./AiSdkChat.ts"
import * as AiSdkEmbed from "./AiSdkEmbed.ts"
import * as AiSdkImages from "./AiSdkImages.ts"
import { opener, type PackageTools } from "./AiSdkPackage.ts"
import * as AiSdkRerank from "./AiSdkRerank.ts"
import * as AiSdkSpeech from "./AiSdkSpeech.ts"

export const make = (means: Means & PackageTools): Perform => {
  const open = opener(means)
  const chat = performByName(AiSdkChat.performs(open, means.guard))
  const media = performByName(
    new Map([
      ...Images.performs(AiSdkImages.make(open, means.guard), means),
      ...Embeddings.performs(AiSdkEmbed.make(open)),
      [rerank.name, AiSdkRerank.make(open)],
      [audioSpeech.name, AiSdkSpeech.make(open)]
    ])
  )
  return (call, sink) => (call.workload === "chat" ? chat : media)(call, sink)
}
