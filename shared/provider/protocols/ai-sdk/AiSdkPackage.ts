/** Loads providers from AI SDK packages, each on the first call to it. The gateway includes none. */
import { Effect, Equal, Option, Predicate, Redacted } from "effect"
import * as undici from "undici"
import type { Provider } from "../../../catalogue/Provider.ts"
import { defaultTimeouts } from "../../../catalogue/Provider.ts"
import * as SecretReference from "../../../catalogue/SecretReference.ts"
import { InternalError, type JobError } from "../../../contract/JobError.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import type { Secrets } from "../../transport/Secrets.ts"
import { type AiSdkOptions, optionsOf } from "./AiSdkOptions.ts"

export interface Opened {
  /** The result of the package's function: an object of functions that make models. */
  readonly provider: unknown
  readonly options: AiSdkOptions
  /** Texts that no error may reveal. */
  readonly secrets: ReadonlyArray<string>
}

export type Opener = (endpoint: Endpoint.Endpoint) => Effect.Effect<Opened, JobError>

/** The services that opening a package needs. */
export interface PackageTools {
  readonly guard: GuardedFetch["Service"]
  readonly secrets: Secrets["Service"]
}

/** Makes the provider of a catalogue entry once, and again if the catalogue or one of the entry's secrets has changed. */
export const opener = ({ guard, secrets: keys }: PackageTools): Opener => {
  const opened = new WeakMap<Provider, Opened>()
  return Effect.fnUntraced(function*(endpoint: Endpoint.Endpoint): Effect.fn.Return<Opened, JobError> {
    const options = yield* optionsOf(endpoint)
    const key = Option.map(yield* Endpoint.keyOf(endpoint, keys), Redacted.value)
    const { secrets, settings } = yield* resolveSettings(endpoint, options.settings ?? {}, keys)
    const { baseUrl } = endpoint.provider
    const hidden = [...Option.toArray(key), ...secrets, ...(baseUrl === undefined ? [] : [baseUrl])]
    const known = opened.get(endpoint.provider)
    if (known !== undefined && Equal.equals(known.secrets, hidden)) return known
    const make = yield* factoryOf(endpoint.name, options, yield* load(endpoint.name, options.package))
    const provider = yield* Effect.try({
      try: () =>
        make({
          // without it some packages, such as openai-compatible, do not ask for the usage of streams
          includeUsage: true,
          ...settings,
          ...Option.match(key, { onNone: () => ({}), onSome: (apiKey) => ({ apiKey }) }),
          ...(baseUrl === undefined ? {} : { baseURL: baseUrl }),
          fetch: guardedFetch(guard, endpoint)
        }),
      catch: (cause) => cause instanceof Error ? cause.name : "an error"
    }).pipe(Effect.catch((cause) => misconfigured(endpoint.name, `rejected by ${options.package}: ${cause}`)))
    const made: Opened = { provider, options, secrets: hidden }
    opened.set(endpoint.provider, made)
    return made
  })
}

const misconfigured = (name: string, detail: string): Effect.Effect<never, InternalError> =>
  Effect.andThen(Effect.logError(`providers.${name}.options in the catalogue: ${detail}`), new InternalError())

const isNotInstalled = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && cause.code === "ERR_MODULE_NOT_FOUND"

/** Loads a package. If it is missing or broken, the catalogue or the installation is wrong. */
const load = (name: string, specifier: string): Effect.Effect<object, InternalError> =>
  Effect.tryPromise({
    try: (): Promise<object> => import(specifier),
    catch: (cause) =>
      isNotInstalled(cause)
        ? `package: '${specifier}' is not installed. Run npm install --save-exact ${specifier}`
        : `package: '${specifier}' cannot be loaded: ${cause}`
  }).pipe(Effect.catch((detail) => misconfigured(name, detail)))

type Factory = (settings: object) => unknown

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** The function named in the options; by default the one named after the package, or the only one. */
const factoryOf = (name: string, options: AiSdkOptions, loaded: object): Effect.Effect<Factory, InternalError> => {
  const factories = Object.entries(loaded).flatMap(([name, value]): ReadonlyArray<readonly [string, Factory]> =>
    /^create[A-Z]/.test(name) && Predicate.isFunction(value) ? [[name, value as Factory]] : []
  )
  const usual = `create${plain(options.package.split("/").at(-1) ?? "")}`
  const found = options.export === undefined
    ? factories.find(([name]) => plain(name) === usual) ?? (factories.length === 1 ? factories[0] : undefined)
    : factories.find(([name]) => name === options.export)
  if (found !== undefined) return Effect.succeed(found[1])
  const names = factories.map(([name]) => name).join(", ")
  return misconfigured(
    name,
    names === ""
      ? `package: '${options.package}' exports no function that makes a provider`
      : `export: must be one of ${names}`
  )
}

/** The settings with their references replaced by secrets. */
const resolveSettings = Effect.fnUntraced(function*(
  endpoint: Endpoint.Endpoint,
  settings: object,
  keys: Secrets["Service"]
) {
  const values = new Map<unknown, string>()
  const named = new Set<string>()
  JSON.stringify(settings, (_name, value: unknown) => {
    if (typeof value === "string" && SecretReference.parse(value) !== undefined) named.add(value)
    return value
  })
  for (const text of named) {
    const secret = yield* keys.resolve(text)
    if (Option.isNone(secret)) return yield* Endpoint.secretMissing(endpoint, text)
    values.set(text, Redacted.value(secret.value))
  }
  const filled: object = JSON.parse(JSON.stringify(settings), (_name, value: unknown) => values.get(value) ?? value)
  return { settings: filled, secrets: [...values.values()] }
})

/**
 * The `fetch` of packages, for the provider and for the URLs in its answers; see `GuardedFetch`.
 *
 * The process's own `Request` encodes the body: undici's fetch does not recognise forms of another implementation.
 */
const guardedFetch = (guard: GuardedFetch["Service"], endpoint: Endpoint.Endpoint): typeof globalThis.fetch => {
  // one package serves all models of the provider, whether or not they stream; the call itself has the limit of the whole answer
  const { firstByteMs = 0, idleMs = defaultTimeouts.silenceMs } = endpoint.provider.timeouts ?? {}
  const dispatcher = guard.dispatcher(Endpoint.originOf(endpoint)).compose((dispatch) => (options, handler) =>
    dispatch({ ...options, headersTimeout: firstByteMs, bodyTimeout: idleMs }, handler)
  )
  return async (input, init) => {
    const request = new Request(input, init)
    const { body, headers, status, statusText } = await undici.fetch(request.url, {
      method: request.method,
      headers: [...request.headers],
      body: request.body === null ? null : new Uint8Array(await request.arrayBuffer()),
      redirect: request.redirect,
      signal: request.signal,
      dispatcher
    })
    // tests in a browser compile this with the streams of a page
    return new Response(body as ConstructorParameters<typeof Response>[0], {
      status,
      statusText,
      headers: [...headers]
    })
  }
}
