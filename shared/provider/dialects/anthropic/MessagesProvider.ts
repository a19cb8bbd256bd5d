/** The messages dialect of a provider. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { anthropicNames } from "../fitting/ToolNames.ts"
import { Decoder } from "./MessagesProviderAnswer.ts"
import { Options, toRequest } from "./MessagesProviderRequest.ts"
import { settings } from "./MessagesRequest.ts"

/** Anthropic answers 400 `Only HTTPS URLs are supported`. */
const insecure = /^http:/i

export const messagesProvider: ProviderDialect<Options> = {
  origin: "anthropic",
  settings,
  takesChoices: false,
  toolNames: anthropicNames,
  pairsCalls: true,
  needsInline: (url, { mediaType, type }) => insecure.test(url) || (type === "file" && mediaType !== "application/pdf"),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
