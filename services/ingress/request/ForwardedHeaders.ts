/** The headers of a request that go into its job. */
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"

/** The longest value, in characters. There are at most six, and NATS bounds a job's message. */
const longest = 1_024

const namesOf = ({ headers = [], versionHeaders = [] }: Operation): ReadonlyArray<string> => [
  ...versionHeaders,
  ...headers
]

/** Why a header cannot be forwarded. */
export const refusalOf = (operation: Operation, headers: RequestHeaders): InvalidRequest | undefined => {
  const name = namesOf(operation).find((each) => (headers[each]?.length ?? 0) > longest)
  return name === undefined ? undefined : InvalidRequest.at(name, `must have at most ${longest} characters`)
}

export const forwardedHeaders = (
  operation: Operation,
  headers: RequestHeaders
): Readonly<Record<string, string>> | undefined => {
  let forwarded: Record<string, string> | undefined
  for (const name of namesOf(operation)) {
    const value = headers[name]
    if (value !== undefined) (forwarded ??= {})[name] = value
  }
  return forwarded
}
