/** Rejects requests before ingress can serve them, with 503 in the dialect of the path. */
import { Unavailable } from "../../../shared/contract/JobError.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import type { RejectionAnswer } from "../../../shared/process/http/HttpServer.ts"
import * as PathTemplate from "../paths/PathTemplate.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import { answerTo } from "./RawAnswer.ts"

const match = PathTemplate.matcher(operations)

export const refusalOf = (url: string): RejectionAnswer =>
  answerTo(match(RouteTemplate.pathOf(url))?.operation.dialect ?? "openai", Unavailable.briefly())
