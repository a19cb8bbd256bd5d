/** Rejects requests before ingress can serve them, with 503 in the dialect of the path. */
import { Unavailable } from "../../../shared/contract/JobError.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import type { RejectionAnswer } from "../../../shared/process/HttpServer.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import { answerTo } from "./UnreadableRequest.ts"

const groups = PathTemplate.groups(operations)

export const refusalOf = (url: string): RejectionAnswer => {
  const [path = ""] = url.split("?")
  const matches = groups.flatMap((group) => {
    const prefix = group.path.replace(/\*$/, "")
    const isHere = prefix === group.path ? path === prefix : path.startsWith(prefix)
    return isHere ? PathTemplate.match(group, path.slice(prefix.length)) ?? [] : []
  })
  return answerTo(matches[0]?.operation.dialect ?? "openai", new Unavailable({ retryAfterMs: 1_000 }))
}
