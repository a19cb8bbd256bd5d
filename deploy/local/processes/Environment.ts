/**
 * The environment of each process of a local start: what it needs of the environment in which `npm start` was typed, where
 * people have keys of many providers, and not what only another process needs.
 */
import type { Snapshot } from "../../../shared/catalogue/Catalogue.ts"
import type { Provider } from "../../../shared/catalogue/Provider.ts"
import * as SecretReference from "../../../shared/catalogue/SecretReference.ts"
import { workloads } from "../../../shared/contract/Operation.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** What any program may need to run. */
const system = [
  "PATH",
  "HOME",
  "LANG",
  "TZ",
  "TMPDIR",
  "NODE_ENV",
  "NODE_OPTIONS",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE"
]

/** Settings of the gateway's own, by their names or by how those begin. */
const settings = /^(?:GATEWAY_|NATS_|OTEL_|LC_|GRACE_MS$|DRAIN_DELAY_MS$)/

/** What signs results and seals conversations is for those who do so. */
const usesSecret = ["ingress", "console", "chat", "images"]

const picked = (environment: Environment, isWanted: (name: string) => boolean): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => isWanted(name)))

/** The variables that a provider's place in the catalogue refers to. */
const variablesOf = (provider: Provider): ReadonlySet<string> => {
  const names = new Set<string>()
  JSON.stringify(provider, (_, value: unknown) => {
    const reference = typeof value === "string" ? SecretReference.parse(value) : undefined
    if (reference?.kind === "variable") names.add(reference.name)
    return value
  })
  return names
}

/** The variables of the providers that models of this workload use; of all providers where none is given. */
const variablesIn = ({ models, providers }: Snapshot, workload?: string): ReadonlySet<string> => {
  const used = new Set(
    [...models.values()]
      .filter((model) => model.workload === workload)
      .flatMap(({ targets }) => targets.map(({ provider }) => provider))
  )
  return new Set(
    [...providers].flatMap(([name, provider]) =>
      workload === undefined || used.has(name) ? [...variablesOf(provider)] : []
    )
  )
}

/** For a program that knows nothing of the gateway, such as nats-server. */
export const ofProgram = (environment: Environment): Record<string, string | undefined> =>
  picked(environment, (name) => system.includes(name) || name.startsWith("LC_"))

/**
 * For a service. A worker gets everything but the keys that only providers of other workloads have: packages of the AI SDK
 * read variables that no catalogue names. No other service gets anything that it does not know.
 */
export const ofService = (
  service: string,
  catalogue: Snapshot,
  environment: Environment
): Record<string, string | undefined> => {
  const ofProviders = variablesIn(catalogue)
  const own = workloads.some((workload) => workload === service) ? variablesIn(catalogue, service) : undefined
  return picked(environment, (name) => {
    if (name === "GATEWAY_BOOTSTRAP_KEY") return false
    if (name === "GATEWAY_SECRET") return usesSecret.includes(service)
    if (name.startsWith("CONSOLE_")) return service === "console"
    if (ofProviders.has(name)) return own?.has(name) === true
    return own !== undefined || system.includes(name) || settings.test(name)
  })
}

/** Whether a service derives keys from `GATEWAY_SECRET`. */
export const needsSecret = (service: string): boolean => usesSecret.includes(service)
