/** The Gemini dialect of a client. */
import * as Contract from "../../../contract/operations/GenerateContent.ts"
import type { ClientDialect } from "../conversation/Dialect.ts"
import { Encoder } from "./GenerateContentAnswer.ts"
import { fates, settings, toConversation } from "./GenerateContentRequest.ts"

const dialect = (operation: string, streams: boolean): ClientDialect<Contract.GenerateContentRequest> => ({
  operation,
  request: Contract.GenerateContentRequest,
  settings,
  fates,
  toConversation,
  streams: () => streams,
  encoder: (_request, identity) => new Encoder(identity)
})

export const generateContent = dialect(Contract.generateContent.name, false)
export const streamGenerateContent = dialect(Contract.streamGenerateContent.name, true)
