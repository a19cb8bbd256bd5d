/** Lists the dialects of chat clients. Every chat engine and every chat provider serves all of them. */
import { messages } from "./anthropic/Messages.ts"
import type { ClientDialect } from "./conversation/Dialect.ts"
import { generateContent, streamGenerateContent } from "./gemini/GenerateContent.ts"
import { chatCompletions } from "./openai/ChatCompletions.ts"
import { completions } from "./openai/Completions.ts"
import { responses } from "./responses/Responses.ts"

/** Makes something for each dialect. */
export const map = <A>(make: <Request>(dialect: ClientDialect<Request>) => A): ReadonlyArray<A> => [
  make(chatCompletions),
  make(completions),
  make(messages),
  make(responses),
  make(generateContent),
  make(streamGenerateContent)
]

/** The names of the dialects' operations. */
export const operations = map(({ operation }) => operation)
