/** Handler of `/api/traces`. */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { KeyTeams } from "../../../shared/usage/KeyTeams.ts"
import { orUnavailable } from "../access/Availability.ts"
import { keysWithin } from "../access/Scopes.ts"
import { handleAll } from "../access/Narrowed.ts"
import { CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { TracesElsewhere, TraceUnknown } from "../api/Traces.ts"
import { Traces } from "../traces/Traces.ts"

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "traces",
  Effect.fn(function*(handlers) {
    const { kept } = yield* Traces
    const keys = yield* KeyStore
    const teamsOf = yield* KeyTeams
    return handleAll("traces", handlers, {
      find: Effect.fnUntraced(function*({ params }) {
        const scope = yield* CurrentScope
        if (Option.isNone(kept)) return yield* new TracesElsewhere()
        const isWithin = scope.isWhole ? undefined : keysWithin(scope, yield* orUnavailable(keys.list), teamsOf)
        const spans = kept.value.inbox.find(params.id, isWithin)
        return spans.length === 0 ? yield* new TraceUnknown() : spans
      })
    })
  })
)
