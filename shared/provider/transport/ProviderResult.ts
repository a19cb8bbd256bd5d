/** Fetches results for which a provider's answer has only a URL. `GuardedFetch` decides which addresses are allowed. */
import { Effect, Schedule } from "effect"
import { ProviderFailed } from "../../contract/JobError.ts"
import { type Endpoint, originOf } from "./Endpoint.ts"
import type { FetchOptions, FetchRefused, GuardedFetch } from "./GuardedFetch.ts"

export interface Bounds extends Required<Pick<FetchOptions, "maximumBytes" | "withinMs">> {
  /** How often to try if the host is down: worth it, because the work is done and paid for. */
  readonly tries: number
}

/** How often to try if the host answers with an error status: one that answers 404 may not have the result yet. */
const triesOfStatus = 3

const retryPolicy = (tries: number) =>
  Schedule.exponential("500 millis").pipe(
    Schedule.jittered,
    Schedule.upTo({ times: tries }),
    Schedule.setInputType<FetchRefused>(),
    Schedule.while(({ attempt, input }) =>
      input.reason === "status" ? attempt <= triesOfStatus : ["time", "unreachable"].includes(input.reason)
    )
  )

export const fetch = (
  guard: GuardedFetch["Service"],
  endpoint: Endpoint,
  url: URL,
  { tries, ...bounds }: Bounds
): Effect.Effect<Uint8Array, ProviderFailed> =>
  guard.fetch(url.href, { ...bounds, trusted: originOf(endpoint) }).pipe(
    Effect.retry(retryPolicy(tries)),
    Effect.map(({ bytes }) => bytes),
    Effect.tapError(({ reason }) =>
      Effect.logWarning("cannot fetch a result", { provider: endpoint.name, host: url.host, reason })
    ),
    Effect.mapError(() => new ProviderFailed({ provider: endpoint.name, reason: "result" }))
  )
