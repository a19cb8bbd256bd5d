/** Lists the dialects in which clients can have tokens counted. Every chat engine and every chat provider serves all of them. */
import { messagesCounts } from "./anthropic/Messages.ts"
import type { CountDialect } from "./conversation/Dialect.ts"
import { countedContent } from "./gemini/GenerateContent.ts"
import { countedInput } from "./responses/Responses.ts"

/** Makes something for each dialect. */
export const map = <A>(make: <Request>(dialect: CountDialect<Request>) => A): ReadonlyArray<A> => [
  make(messagesCounts),
  make(countedContent),
  make(countedInput)
]

/** The names of the dialects' operations. */
export const operations = map(({ operation }) => operation)
