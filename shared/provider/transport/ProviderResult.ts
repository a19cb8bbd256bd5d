/** Fetches results that a provider's answer only says the address of; see `GuardedFetch` for where that may lead. */
import { Effect, Schedule } from "effect"
import { ProviderFailed } from "../../contract/JobError.ts"
import { originOf } from "./Endpoint.ts"
import type { FetchOptions, FetchRefused, GuardedFetch } from "./GuardedFetch.ts"
import type { Endpoint } from "./Endpoint.ts"

export interface Bounds extends Required<Pick<FetchOptions, "maximumBytes" | "withinMs">> {
  /** How often it is tried again where the host is away. The work is done and paid for. */
  readonly tries: number
}

/** A host that says that there is nothing may not know of it yet, but soon will. */
const triesOfStatus = 3

const again = (tries: number) =>
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
    Effect.retry(again(tries)),
    Effect.map(({ bytes }) => bytes),
    Effect.tapError(({ reason }) =>
      Effect.logWarning("a result cannot be fetched", { provider: endpoint.name, host: url.host, reason })
    ),
    Effect.mapError(() =>
      new ProviderFailed({ provider: endpoint.name, reason: "result", status: null, retryAfterMs: null })
    )
  )
