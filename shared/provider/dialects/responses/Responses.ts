/** The responses dialect of a client. */
import * as Contract from "../../../contract/operations/Responses.ts"
import { responsesCount, ResponsesCountRequest } from "../../../contract/operations/TokenCounts.ts"
import type { ClientDialect, CountDialect } from "../conversation/Dialect.ts"
import { Encoder } from "./ResponsesAnswer.ts"
import { Decoder } from "./ResponsesProviderAnswer.ts"
import { fates, settings, toConversation } from "./ResponsesRequest.ts"

export const responses: ClientDialect<Contract.ResponsesRequest> = {
  operation: Contract.responses.name,
  request: Contract.ResponsesRequest,
  settings,
  fates,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (request, identity) => new Encoder(request, identity),
  continuation: {
    decoder: () => new Decoder(),
    // no provider continues the beginning of an item
    prefill: () => undefined
  }
}

export const countedInput: CountDialect<ResponsesCountRequest> = {
  operation: responsesCount.name,
  request: ResponsesCountRequest,
  settings,
  fates,
  toConversation,
  toAnswer: (input_tokens) => ({ object: "response.input_tokens", input_tokens })
}
