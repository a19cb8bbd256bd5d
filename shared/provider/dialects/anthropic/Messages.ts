/** The messages dialect of a client. */
import * as Contract from "../../../contract/operations/Messages.ts"
import { messagesCount, MessagesCountRequest } from "../../../contract/operations/TokenCounts.ts"
import type { ClientDialect, CountDialect } from "../conversation/Dialect.ts"
import * as JsonText from "../../json/JsonText.ts"
import { Encoder } from "./MessagesAnswer.ts"
import { Decoder } from "./MessagesProviderAnswer.ts"
import { fates, settings, toConversation } from "./MessagesRequest.ts"

export const messages: ClientDialect<Contract.MessagesRequest> = {
  operation: Contract.messages.name,
  request: Contract.MessagesRequest,
  settings,
  fates,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (_request, identity) => new Encoder(identity),
  continuation: {
    decoder: () => new Decoder(),
    prefill: (body, content) => JsonText.append(body, "messages", { role: "assistant", content })
  }
}

export const messagesCounts: CountDialect<MessagesCountRequest> = {
  operation: messagesCount.name,
  request: MessagesCountRequest,
  settings,
  fates,
  toConversation: (request, losses) => toConversation({ ...request, max_tokens: 1 }, losses),
  toAnswer: (input_tokens) => ({ input_tokens })
}
