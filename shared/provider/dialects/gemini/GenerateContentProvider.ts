/** The Gemini dialect of a provider. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { geminiNames } from "../fitting/ToolNames.ts"
import { Decoder } from "./GenerateContentProviderAnswer.ts"
import { Options, toRequest } from "./GenerateContentProviderRequest.ts"
import { settings } from "./GenerateContentRequest.ts"

/** Files uploaded to Google, and YouTube videos. */
const own = /^(?:gs:|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/i

export const generateContentProvider: ProviderDialect<Options> = {
  origin: "gemini",
  settings,
  takesChoices: true,
  toolNames: geminiNames,
  pairsCalls: true,
  needsInline: (url) => !own.test(url),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
