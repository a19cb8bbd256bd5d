/** The provider and model that were chosen for a call, with helpers for the provider's key, URLs and timeouts. */
import { Effect, Option, Redacted } from "effect"
import { createHmac } from "node:crypto"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { defaultTimeouts, type Provider, type Timeouts as CatalogueTimeouts } from "../../catalogue/Provider.ts"
import { type JobError, ProviderFailed, ProviderTimeout } from "../../contract/JobError.ts"
import * as SchemaErrors from "../../contract/SchemaErrors.ts"
import type { Secrets } from "./Secrets.ts"
import type { Address } from "./Upstream.ts"

export interface Endpoint {
  /** The provider's name in the catalogue, for errors, spans and metrics. */
  readonly name: string
  readonly provider: Provider
  /** The model's name at the provider. */
  readonly model: string
  /** The time limits that go before the provider's, the nearest first. */
  readonly timeouts?: ReadonlyArray<TimeoutLevel>
  /** Whether no client waits on a connection for the answer. */
  readonly isBackground?: boolean
}

/** Time limits of the catalogue, with the words for whose they are. */
export interface TimeoutLevel {
  readonly of: string
  readonly timeouts: CatalogueTimeouts
}

const inBackgrounds = new WeakMap<Endpoint, Endpoint>()

/** The endpoint for work in the background, always the same object, because others are cached by it. */
export const inBackground = (endpoint: Endpoint): Endpoint => {
  let background = inBackgrounds.get(endpoint)
  if (background === undefined) inBackgrounds.set(endpoint, background = { ...endpoint, isBackground: true })
  return background
}

/** The providers whose missing secret has been logged. The catalogue has new ones after each change. */
const logged = new WeakSet<Provider>()

/** Fails because a reference in the catalogue cannot be resolved. Logs the first failure: only the operator can correct it. */
export const secretMissing = (
  { name, provider }: Endpoint,
  reference: string
): Effect.Effect<never, ProviderFailed> => {
  const failure = Effect.fail(new ProviderFailed({ provider: name, reason: "credentials" }))
  if (logged.has(provider)) return failure
  logged.add(provider)
  const field = SchemaErrors.formatPath(["providers", name])
  return Effect.andThen(
    Effect.logError(`${field} in the catalogue needs ${reference}, which has no value here`),
    failure
  )
}

/** The provider's key; `None` if it needs none. Fails if the catalogue's reference cannot be resolved. */
export const keyOf = (
  endpoint: Endpoint,
  secrets: Secrets["Service"]
): Effect.Effect<Option.Option<Redacted.Redacted>, JobError> => {
  const { apiKey } = endpoint.provider
  if (apiKey === undefined) return Effect.succeedNone
  return Fiberless.flatMap(
    secrets.resolve(apiKey),
    (key): ReturnType<typeof keyOf> => Option.isSome(key) ? Effect.succeed(key) : secretMissing(endpoint, apiKey)
  )
}

/** The latest account of each endpoint: nearly all calls have the same key. */
const latestAccounts = new WeakMap<Endpoint, { readonly key: string | undefined; readonly account: string }>()

/**
 * Identifies the account at the provider: 12 hexadecimal digits of a hash of the provider's name and key, which reveal neither. For a
 * provider without a key, the `baseUrl` takes its place.
 */
export const accountOf = (endpoint: Endpoint, key: string | undefined): string => {
  let known = latestAccounts.get(endpoint)
  if (known === undefined || known.key !== key) {
    const { name, provider: { baseUrl = "" } } = endpoint
    const account = createHmac("sha256", key ?? baseUrl).update(`account\0${name}`).digest("hex").slice(0, 12)
    known = { key, account }
    latestAccounts.set(endpoint, known)
  }
  return known.account
}

/** The account of an endpoint, whose key is read first. */
export const accountFor = (endpoint: Endpoint, secrets: Secrets["Service"]): Effect.Effect<string, JobError> =>
  Fiberless.flatMap(
    keyOf(endpoint, secrets),
    (key) => Effect.succeed(accountOf(endpoint, Option.getOrUndefined(Option.map(key, Redacted.value))))
  )

/** The latest address of each endpoint: nearly all calls have the same. */
const latest = new WeakMap<Endpoint, { readonly below: string; readonly address: Address }>()

/** A version at the end of a `baseUrl`. Only some vendors' SDKs have it there, so operators write it for others as well. */
const versionAtEnd = /\/v\d+(?:(?:alpha|beta)\d*)?$/
const versionFirst = /^\/v\d/
const versionAnywhere = /\/v\d/

/** The version where a `baseUrl` has none: Google's SDKs take their base URL without it. */
const usualVersions: { readonly [_ in Provider["protocol"]]?: string } = { gemini: "/v1beta" }

/** A path below the path of a `baseUrl`. A version in both is the lower one's. */
const joined = (base: string, below: string, usualVersion = ""): string => {
  const upper = base.replace(/\/+$/, "")
  if (versionFirst.test(below)) return upper.replace(versionAtEnd, "") + below
  return (versionAnywhere.test(upper) ? upper : upper + usualVersion) + below
}

/** The address of a path below the provider's `baseUrl`. */
export const addressOf = (endpoint: Endpoint, below: string): Address => {
  let known = latest.get(endpoint)
  if (known?.below !== below) {
    const { baseUrl = "", protocol } = endpoint.provider
    const base = new URL(baseUrl)
    const path = joined(base.pathname, below, usualVersions[protocol])
    const { origin, pathname, search } = new URL(`${base.origin}${path}`)
    known = { below, address: { origin, path: pathname + search } }
    latest.set(endpoint, known)
  }
  return known.address
}

/** Scheme, host and port of the `baseUrl`; `undefined` if the catalogue names none. */
export const originOf = ({ provider: { baseUrl } }: Endpoint): string | undefined =>
  baseUrl === undefined ? undefined : new URL(baseUrl).origin

export interface Timeouts {
  readonly firstByteMs: number
  /** `undefined` for no limit. */
  readonly firstTokenMs: number | undefined
  readonly idleMs: number
  readonly totalMs: number
}

/** What a call is like, as far as its time limits depend on it. */
export interface CallKind {
  /** Default: false. */
  readonly streams?: boolean
  /** The limit of the whole call if it is shorter, in milliseconds. */
  readonly withinMs?: number | undefined
}

type Setting = keyof CatalogueTimeouts

/** The nearest place in the catalogue that sets a time limit, and the limit. */
const configured = ({ name, provider, timeouts = [] }: Endpoint, setting: Setting) => {
  for (const { of, timeouts: { [setting]: ms } } of timeouts) if (ms !== undefined) return { of, ms }
  const ms = provider.timeouts?.[setting]
  return ms === undefined ? undefined : { of: `the provider '${name}'`, ms }
}

/** The time limits of a call to this endpoint, in milliseconds. */
export const timeoutsOf = (endpoint: Endpoint, { streams = false, withinMs = Infinity }: CallKind = {}): Timeouts => {
  const msOf = (setting: Setting) => configured(endpoint, setting)?.ms
  const usualMs = endpoint.isBackground === true ? defaultTimeouts.backgroundMs : defaultTimeouts.totalMs
  const totalMs = Math.min(msOf("totalMs") ?? usualMs, withinMs)
  // the first byte of an answer that is no stream comes with its end, or after headers that say nothing about it
  const silenceMs = streams ? defaultTimeouts.silenceMs : totalMs
  return {
    firstByteMs: Math.min(msOf("firstByteMs") ?? silenceMs, totalMs),
    firstTokenMs: streams ? msOf("firstTokenMs") : undefined,
    idleMs: msOf("idleMs") ?? silenceMs,
    totalMs
  }
}

const settings = {
  "first byte": "firstByteMs",
  "first token": "firstTokenMs",
  "idle": "idleMs",
  "total": "totalMs"
} as const satisfies Partial<Record<ProviderTimeout["phase"], Setting>>

/** Whether the catalogue sets the limit of this phase, instead of its default. */
export const isConfigured = (endpoint: Endpoint, phase: ProviderTimeout["phase"]): boolean =>
  phase !== "connect" && configured(endpoint, settings[phase]) !== undefined

/** The error of a call that has ended at a time limit, which it names. */
export const timedOut = (endpoint: Endpoint, phase: keyof typeof settings, kind?: CallKind): ProviderTimeout => {
  const limits = timeoutsOf(endpoint, kind)
  const set = configured(endpoint, settings[phase])
  const ms = set?.ms ?? limits[settings[phase]]
  // a first byte without a limit of its own ends with the whole answer
  const setting = set === undefined && ms === limits.totalMs ? "totalMs" : settings[phase]
  const by = set ?? configured(endpoint, setting)
  const limit =
    kind?.withinMs !== undefined && limits.totalMs === kind.withinMs && ms !== undefined && ms >= kind.withinMs
      ? `${kind.withinMs} ms for this call`
      : by === undefined
      ? `${ms} ms, the default of timeouts.${setting}`
      : `${by.ms} ms, by timeouts.${setting} of ${by.of}`
  return new ProviderTimeout({ provider: endpoint.name, phase, limit })
}
