/** Handlers of `/api/usage` and `/api/requests`. */
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { KeyTeams } from "../../../shared/usage/KeyTeams.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { orUnavailable, whileCounting } from "../access/Availability.ts"
import { keysWithin } from "../access/Scopes.ts"
import { handleAll } from "../access/Narrowed.ts"
import { RequestLog } from "./RequestLog.ts"

const shownRequests = 200

/** How many requests of all keys are read to find those of a member's teams. */
const searchedRequests = 1_000

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "usage",
  Effect.fn(function*(handlers) {
    const counters = yield* UsageCounters
    const log = yield* RequestLog
    const keys = yield* KeyStore
    const teamsOf = yield* KeyTeams

    const latest = Effect.gen(function*() {
      const scope = yield* CurrentScope
      if (scope.isWhole) return yield* log.latest(shownRequests)
      const isWithin = keysWithin(scope, yield* keys.list, teamsOf)
      const found = yield* log.latest(searchedRequests)
      return found.filter(({ key }) => isWithin(key)).slice(0, shownRequests)
    })

    return handleAll("usage", handlers, {
      query: Effect.fnUntraced(function*({ query }) {
        const { has } = yield* CurrentScope
        return yield* orUnavailable(counters.query(query, has), whileCounting)
      }),
      csv: Effect.fnUntraced(function*({ query }) {
        const { has } = yield* CurrentScope
        const disposition = `attachment; filename="usage-${query.from}-${query.to}.csv"`
        yield* HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeader(response, "content-disposition", disposition))
        )
        return yield* orUnavailable(counters.csv(query, has), whileCounting)
      }),
      requests: () => orUnavailable(latest)
    })
  })
)
