/**
 * The environment of each process of a local start: only the variables that it needs of the user's environment, which may hold keys
 * of many providers.
 */
import type { Snapshot } from "../../../shared/catalogue/Catalogue.ts"
import type { Provider } from "../../../shared/catalogue/Provider.ts"
import * as SecretReference from "../../../shared/catalogue/SecretReference.ts"
import { workloads } from "../../../shared/contract/Operation.ts"

export type Environment = Readonly<Record<string, string | undefined>>

/** Variables for any program. */
const system = [
  "PATH",
  "HOME",
  "LANG",
  "TZ",
  "TMPDIR",
  "NODE_COMPILE_CACHE",
  "NODE_ENV",
  "NODE_OPTIONS",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE"
]

/** The gateway's own settings. */
const settings = /^(?:GATEWAY_|NATS_|OTEL_|LC_|LOG_LEVEL$|GRACE_MS$|DRAIN_DELAY_MS$)/

/** Whether a service signs results or seals what clients have sent, with keys derived from `GATEWAY_SECRET`. */
export const needsSecret = (service: string): boolean =>
  ["ingress", "console", "batches", "chat", "images", "embeddings", "rerank", "speech"].includes(service)

const picked = (environment: Environment, isWanted: (name: string) => boolean): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => isWanted(name)))

/** The variables to which a provider in the catalogue refers. */
const variablesOf = (provider: Provider): ReadonlySet<string> => {
  const names = new Set<string>()
  JSON.stringify(provider, (_, value: unknown) => {
    const reference = typeof value === "string" ? SecretReference.parse(value) : undefined
    if (reference?.kind === "variable") names.add(reference.name)
    return value
  })
  return names
}

/** The variables of the providers of this workload's models; without a workload, of all providers. */
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

/** The environment of other programs, such as nats-server. */
export const ofProgram = (environment: Environment): Record<string, string | undefined> =>
  picked(environment, (name) => system.includes(name) || name.startsWith("LC_"))

/**
 * The environment of a service. A worker gets all variables except the keys of other workloads' providers, because packages of the
 * AI SDK read variables that no catalogue names. Other services get only known variables.
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
    if (name === "GATEWAY_SECRET") return needsSecret(service)
    if (name.startsWith("CONSOLE_")) return service === "console"
    if (name.startsWith("WORKER_") && service === "batches") return true
    if (ofProviders.has(name)) return own?.has(name) === true
    return own !== undefined || system.includes(name) || settings.test(name)
  })
}
