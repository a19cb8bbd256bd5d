/** The dialects in which clients have tokens counted. Every chat engine and every chat provider serves all of them. */
import { messagesCounts } from "./anthropic/Messages.ts"
import type { CountDialect } from "./conversation/Dialect.ts"
import { countedContent } from "./gemini/GenerateContent.ts"

/** Makes something for each dialect. */
export const map = <A>(make: <Request>(dialect: CountDialect<Request>) => A): ReadonlyArray<A> => [
  make(messagesCounts),
  make(countedContent)
]

/** The names of their operations. */
export const operations = map(({ operation }) => operation)
