/** The messages dialect of a provider. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { Decoder } from "./MessagesProviderAnswer.ts"
import { Options, toRequest } from "./MessagesProviderRequest.ts"
import { settings } from "./MessagesRequest.ts"

export const messagesProvider: ProviderDialect<Options> = {
  origin: "anthropic",
  settings,
  takesChoices: false,
  needsInline: (_url, { mediaType, type }) => type === "file" && mediaType !== "application/pdf",
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
