/** Rejects requests before ingress can serve them, with 503 in the dialect of the path. */
import { Unavailable } from "../../../shared/contract/JobError.ts"
import type { RejectionAnswer } from "../../../shared/process/http/HttpServer.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import { answerTo } from "./RawAnswer.ts"

export const refusalOf = (url: string): RejectionAnswer => answerTo(RouteTemplate.dialectOf(url), Unavailable.briefly())
