/**
 * Threads of the Messages API: Anthropic keeps the conversation, and each request has only its new messages. Other servers that speak
 * the API ignore the field: an agent would get answers without its conversation, and call its tools for ever.
 */
import { InvalidRequest } from "../../../contract/JobError.ts"
import { noThreads } from "../../dialects/anthropic/MessagesRequest.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import type { RelayedBody } from "../../exchange/RelayedBody.ts"
import * as Json from "../../json/Json.ts"

const mark = ["\"thread\""]

const ofAnthropic = /^https:\/\/api\.anthropic\.com(?=[:/]|$)/i

const keepsThreads = ({ provider: { baseUrl = "", options } }: Endpoint): boolean =>
  (Json.fields(options)["threads"] ?? ofAnthropic.test(baseUrl)) === true

/** The error for a request with a thread that its provider does not keep. */
export const refusedThread = (body: RelayedBody, endpoint: Endpoint): InvalidRequest | undefined => {
  if (!body.mentions(mark) || keepsThreads(endpoint)) return undefined
  if ((body.valueOf("thread") ?? null) === null) return undefined
  const { details, problem } = noThreads
  return new InvalidRequest({ message: `thread: ${problem}`, param: "thread", code: "not_supported", details })
}
