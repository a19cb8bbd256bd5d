/** Handler of `/api/traces`. */
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../api/Api.ts"
import { TracesElsewhere, TraceUnknown } from "../api/Traces.ts"
import { Traces } from "../traces/Traces.ts"

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "traces",
  Effect.fn(function*(handlers) {
    const { kept } = yield* Traces
    return handlers.handleAll({
      find: Effect.fnUntraced(function*({ params }) {
        if (Option.isNone(kept)) return yield* new TracesElsewhere()
        const spans = kept.value.inbox.find(params.id)
        return spans.length === 0 ? yield* new TraceUnknown() : spans
      })
    })
  })
)
