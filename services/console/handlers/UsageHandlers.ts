/** Handlers of `/api/usage` and `/api/requests`. */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { ConsoleApi } from "../api/Api.ts"
import { orUnavailable, whileCounting } from "../access/Availability.ts"
import { RequestLog } from "./RequestLog.ts"

const shownRequests = 200

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "usage",
  Effect.fn(function*(handlers) {
    const counters = yield* UsageCounters
    const log = yield* RequestLog

    return handlers.handleAll({
      query: ({ query }) => orUnavailable(counters.query(query), whileCounting),
      csv: Effect.fnUntraced(function*({ query }) {
        const disposition = `attachment; filename="usage-${query.from}-${query.to}.csv"`
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeader(response, "content-disposition", disposition))
        )
        return yield* orUnavailable(counters.csv(query), whileCounting)
      }),
      requests: () => orUnavailable(log.latest(shownRequests))
    })
  })
)
