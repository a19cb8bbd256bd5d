/** The Gemini dialect of a provider. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { Decoder } from "./GenerateContentProviderAnswer.ts"
import { Options, toRequest } from "./GenerateContentProviderRequest.ts"
import { settings } from "./GenerateContentRequest.ts"

/** Files that were uploaded to it, and videos that it has itself. */
const own = /^(?:gs:|https:\/\/(?:generativelanguage\.googleapis\.com|(?:www\.)?youtube\.com|youtu\.be)\/)/i

export const generateContentProvider: ProviderDialect<Options> = {
  origin: "gemini",
  settings,
  takesChoices: true,
  needsInline: (url) => !own.test(url),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
