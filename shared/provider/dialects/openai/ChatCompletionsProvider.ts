/** The chat completions dialect of a provider. */
import { Decoder } from "./ChatCompletionsProviderAnswer.ts"
import { Options, toRequest } from "./ChatCompletionsProviderRequest.ts"
import { settings } from "./ChatCompletionsRequest.ts"
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { openAiNames } from "../fitting/ToolNames.ts"

export const chatCompletionsProvider: ProviderDialect<typeof Options.Type> = {
  origin: "openai",
  settings: { ...settings, maxTokens: "max_completion_tokens" },
  takesChoices: true,
  toolNames: openAiNames,
  // OpenAI itself does, other servers of the dialect do not
  pairsCalls: false,
  needsInline: (_url, { mediaType, type }) => type === "file" && !mediaType.startsWith("video/"),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
