/** How a chosen provider is reached: its key and its patience, with the defaults filled in. */
import { Effect, Option, type Redacted } from "effect"
import { defaultTimeouts, type Provider } from "../../catalogue/Catalogue.ts"
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import type { Secrets } from "./Secrets.ts"

/** The provider that was chosen for a call. */
export interface Endpoint {
  /** Its name in the catalogue: for errors, spans and metrics. */
  readonly name: string
  readonly provider: Provider
  /** The model's name at the provider. */
  readonly model: string
}

/** The provider's key; `None` for one that needs none. Fails where there is nothing at the place that the catalogue names. */
export const keyOf = (
  endpoint: Endpoint,
  secrets: Secrets["Service"]
): Effect.Effect<Option.Option<Redacted.Redacted>, JobError> => {
  const { apiKey } = endpoint.provider
  if (apiKey === undefined) return Effect.succeedNone
  return Effect.filterOrFail(
    secrets.resolve(apiKey),
    Option.isSome,
    () => new ProviderFailed({ provider: endpoint.name, reason: "credentials", status: null, retryAfterMs: null })
  )
}

const urls = new Map<string, URL>()

/** An address below the provider's `baseUrl`. Each is parsed once: there are as many as the catalogue has providers. */
export const urlOf = (endpoint: Endpoint, path: string): URL => {
  const text = `${endpoint.provider.baseUrl}${path}`
  let url = urls.get(text)
  if (url === undefined) {
    url = new URL(text)
    urls.set(text, url)
  }
  return url
}

/** Scheme, host and port of its `baseUrl`, where the catalogue names one. */
export const originOf = ({ provider: { baseUrl } }: Endpoint): string | undefined =>
  baseUrl === undefined ? undefined : new URL(baseUrl).origin

export interface Timeouts {
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

export const timeoutsOf = (endpoint: Endpoint): Timeouts => ({ ...defaultTimeouts, ...endpoint.provider.timeouts })
