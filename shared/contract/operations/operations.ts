/** All operations. Everything that exists once per operation is derived from this list. */
import { audioSpeech } from "./audio/Speech.ts"
import { transcriptions, translations } from "./audio/Transcriptions.ts"
import { chatCompletions } from "./ChatCompletions.ts"
import { compaction } from "./Compaction.ts"
import { completions } from "./Completions.ts"
import { embed } from "./embeddings/Embed.ts"
import { batchEmbedContents, embedContent } from "./embeddings/EmbedContent.ts"
import { embeddings, engineEmbeddings } from "./embeddings/Embeddings.ts"
import { generateContent, streamGenerateContent } from "./GenerateContent.ts"
import { imageEdits } from "./ImageEdits.ts"
import { imageGenerations } from "./ImageGenerations.ts"
import { messages } from "./Messages.ts"
import { moderations } from "./Moderations.ts"
import type { Operation } from "../Operation.ts"
import { rerank } from "./Rerank.ts"
import { responses } from "./Responses.ts"
import { countTokens, messagesCount, responsesCount } from "./TokenCounts.ts"
import { videoGenerations } from "./VideoGenerations.ts"

export const operations: ReadonlyArray<Operation> = [
  audioSpeech,
  batchEmbedContents,
  chatCompletions,
  compaction,
  completions,
  countTokens,
  embed,
  embedContent,
  embeddings,
  engineEmbeddings,
  generateContent,
  imageEdits,
  imageGenerations,
  messages,
  messagesCount,
  moderations,
  rerank,
  responses,
  responsesCount,
  streamGenerateContent,
  transcriptions,
  translations,
  videoGenerations
]

const byName = new Map(operations.map((operation) => [operation.name, operation]))

export const operationNamed = (name: string): Operation | undefined => byName.get(name)
