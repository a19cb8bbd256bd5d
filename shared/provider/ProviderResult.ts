/** Fetches results that a provider's answer only says the address of; see `GuardedFetch` for where that may lead. */
import { Effect, Schedule } from "effect"
import { ProviderFailed } from "../contract/JobError.ts"
import { originOf } from "./Endpoint.ts"
import type { FetchOptions, FetchRefused, GuardedFetch } from "./GuardedFetch.ts"
import type { Endpoint } from "./Protocol.ts"

/** The work is done and paid for: it is worth some more tries. */
const again = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 3 }),
  Schedule.setInputType<FetchRefused>(),
  Schedule.while(({ input }) => ["time", "status", "unreachable"].includes(input.reason))
)

export const fetch = (
  guard: GuardedFetch["Service"],
  endpoint: Endpoint,
  url: URL,
  bounds: Required<Pick<FetchOptions, "maximumBytes" | "withinMs">>
): Effect.Effect<Uint8Array, ProviderFailed> =>
  guard.fetch(url.href, { ...bounds, trusted: originOf(endpoint) }).pipe(
    Effect.retry(again),
    Effect.map(({ bytes }) => bytes),
    Effect.tapError(({ reason }) =>
      Effect.logWarning("a result cannot be fetched", { provider: endpoint.name, host: url.host, reason })
    ),
    Effect.mapError(() =>
      new ProviderFailed({ provider: endpoint.name, reason: "result", status: null, retryAfterMs: null })
    )
  )
