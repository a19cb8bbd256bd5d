/** The dialect of Cohere's chat API, version 2. */
import type { ProviderDialect } from "../conversation/Dialect.ts"
import { cohereNames } from "../fitting/ToolNames.ts"
import { CohereOptions } from "./CohereOptions.ts"
import { Decoder } from "./CohereProviderAnswer.ts"
import { toRequest } from "./CohereProviderRequest.ts"

export const cohereProvider: ProviderDialect<CohereOptions> = {
  origin: "cohere",
  settings: {
    temperature: "temperature",
    topP: "p",
    topK: "k",
    presencePenalty: "presence_penalty",
    frequencyPenalty: "frequency_penalty",
    seed: "seed",
    stop: "stop_sequences",
    maxTokens: "max_tokens",
    reasoning: "thinking",
    format: "response_format",
    toolChoice: "tool_choice"
  },
  takesChoices: false,
  toolNames: cohereNames,
  pairsCalls: true,
  needsInline: (_url, { type }) => type === "file",
  options: CohereOptions,
  toRequest,
  decoder: () => new Decoder()
}
