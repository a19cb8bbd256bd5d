/** The chat completions dialect of a client. */
import * as Contract from "../../../contract/operations/ChatCompletions.ts"
import { encoder } from "./ChatCompletionsAnswer.ts"
import { Decoder } from "./ChatCompletionsProviderAnswer.ts"
import { fates, settings, toConversation } from "./ChatCompletionsRequest.ts"
import type { ClientDialect } from "../conversation/Dialect.ts"
import * as JsonText from "../../json/JsonText.ts"

export const chatCompletions: ClientDialect<Contract.ChatCompletionRequest> = {
  operation: Contract.chatCompletions.name,
  request: Contract.ChatCompletionRequest,
  settings,
  fates,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (request, identity) =>
    encoder(identity, {
      includeUsage: request.stream_options?.include_usage === true,
      customTools: new Set((request.tools ?? []).flatMap((tool) => "custom" in tool ? [tool.custom.name] : []))
    }),
  continuation: {
    decoder: () => new Decoder(),
    prefill: (body, content) => JsonText.append(body, "messages", { role: "assistant", content })
  }
}
