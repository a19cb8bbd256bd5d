/** Rejects requests before ingress can serve them, with 503 in the dialect of the path. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Unavailable } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { retryElsewhereHeaders } from "../../../shared/process/RefuseWhileStarting.ts"
import { requestIds } from "./AnswerHeaders.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { RequestRecord } from "../record/RequestRecord.ts"

const groups = PathTemplate.groups(operations)

const dialectOf = (path: string): Dialect => {
  for (const group of groups) {
    const prefix = group.path.replace(/\*$/, "")
    const isHere = prefix === group.path ? path === prefix : path.startsWith(prefix)
    const found = isHere ? PathTemplate.match(group, path.slice(prefix.length)) : undefined
    if (found !== undefined) return found.operation.dialect
  }
  return "openai"
}

export const reject = ({ url = "" }: IncomingMessage, response: ServerResponse): void => {
  const id = RequestRecord.makeId()
  const [path = ""] = url.split("?")
  const { body, status } = ErrorEnvelope.toText(dialectOf(path), new Unavailable({ retryAfterMs: 1_000 }), id)
  response.writeHead(status, { "content-type": "application/json", ...requestIds(id), ...retryElsewhereHeaders }).end(
    body
  )
}
