/** What a guardrail can check of the answers to each operation. README.md beside this file has the same table for operators. */
import type { Operation } from "../contract/Operation.ts"

/**
 * `text`: what a model wrote. `media`: pictures, videos or sound, which cannot be checked. `none`: numbers, or data that only the
 * gateway or a provider can read, so there is nothing to check.
 */
export type Coverage = "text" | "media" | "none"

/** The coverage by the name of the operation. */
export const coverages: Readonly<Record<string, Coverage>> = {
  "audio.speech": "media",
  "audio.transcriptions": "text",
  "audio.translations": "text",
  batchEmbedContents: "none",
  "chat.completions": "text",
  completions: "text",
  countTokens: "none",
  embed: "none",
  embedContent: "none",
  embeddings: "none",
  "engines.embeddings": "none",
  generateContent: "text",
  "images.edits": "media",
  "images.generations": "media",
  messages: "text",
  "messages.count_tokens": "none",
  moderations: "none",
  rerank: "none",
  responses: "text",
  "responses.compact": "none",
  "responses.input_tokens": "none",
  streamGenerateContent: "text",
  "video.generations": "media"
}

/** The coverage of an operation. Operations that are not in the table cannot be checked. */
export const coverageOf = ({ name }: Operation): Coverage => coverages[name] ?? "media"
