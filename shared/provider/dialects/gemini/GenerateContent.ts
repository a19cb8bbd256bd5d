/** The Gemini dialect of a client. */
import { inEitherSpelling } from "../../../contract/http/FieldSpelling.ts"
import * as Contract from "../../../contract/operations/GenerateContent.ts"
import { countTokens, CountTokensRequest } from "../../../contract/operations/TokenCounts.ts"
import type { ClientDialect, CountDialect } from "../conversation/Dialect.ts"
import { inBothSpellings } from "../conversation/Losses.ts"
import * as JsonText from "../../json/JsonText.ts"
import { Encoder } from "./GenerateContentAnswer.ts"
import { Decoder } from "./GenerateContentProviderAnswer.ts"
import { contentFates, fates, settings, toConversation } from "./GenerateContentRequest.ts"

const dialect = (operation: string, streams: boolean): ClientDialect<Contract.GenerateContentRequest> => ({
  operation,
  request: inEitherSpelling(Contract.GenerateContentRequest),
  settings,
  fates: inBothSpellings(fates),
  toConversation,
  streams: () => streams,
  encoder: (_request, identity) => new Encoder(identity),
  continuation: {
    decoder: () => new Decoder(),
    prefill: (body, text) => JsonText.append(body, "contents", { role: "model", parts: [{ text }] })
  }
})

export const generateContent = dialect(Contract.generateContent.name, false)
export const streamGenerateContent = dialect(Contract.streamGenerateContent.name, true)

export const countedContent: CountDialect<CountTokensRequest> = {
  operation: countTokens.name,
  request: inEitherSpelling(CountTokensRequest),
  settings,
  fates: inBothSpellings({ model: "carried", contents: [contentFates], generateContentRequest: fates }),
  toConversation: ({ contents = [], generateContentRequest: whole }, losses) => {
    if (whole) losses.moveInto("generateContentRequest")
    return toConversation(whole ?? { contents }, losses)
  },
  toAnswer: (totalTokens) => ({ totalTokens })
}
