/** The responses dialect of a client. */
import * as Contract from "../../../contract/operations/Responses.ts"
import { responsesCount, ResponsesCountRequest } from "../../../contract/operations/TokenCounts.ts"
import * as JsonText from "../../json/JsonText.ts"
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
    prefill: (body, text) => {
      const members = JsonText.members(body) ?? []
      const input = JsonText.valueOf(body, members, "input")
      const begun = { type: "message", role: "assistant", content: [{ type: "output_text", text }] }
      return typeof input === "string"
        ? JsonText.setMembers(body, members, new Map([["input", [{ role: "user", content: input }, begun]]]))
        : JsonText.append(body, "input", begun)
    },
    takeOver: (request, identity, text, lastFrame) => Encoder.after(request, identity, text, lastFrame)
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
