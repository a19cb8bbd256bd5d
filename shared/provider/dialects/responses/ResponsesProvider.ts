/** The responses dialect of a provider. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { openAiNames } from "../fitting/ToolNames.ts"
import { Options } from "../openai/ChatCompletionsProviderRequest.ts"
import { Decoder } from "./ResponsesProviderAnswer.ts"
import { toRequest } from "./ResponsesProviderRequest.ts"
import { settings } from "./ResponsesRequest.ts"

export const responsesProvider: ProviderDialect<typeof Options.Type> = {
  origin: "responses",
  settings,
  takesChoices: false,
  toolNames: openAiNames,
  pairsCalls: true,
  needsInline: (_url, { mediaType }) => mediaType.startsWith("audio/"),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
