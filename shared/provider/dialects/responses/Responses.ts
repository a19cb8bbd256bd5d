/** The responses dialect of a client. */
import * as Contract from "../../../contract/operations/Responses.ts"
import type { ClientDialect } from "../conversation/Dialect.ts"
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
