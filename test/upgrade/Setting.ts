/** A gateway that every version since 0.1.0 can run: its catalogue, its keys, and what requests cost. */
import type { Gateway } from "../fixture/gateway/Gateway.ts"

/** The words of a request and of an answer, which the provider counts as tokens. */
export const words = { request: 7, answer: 5 }

export const price = { inputPerMillion: 1_000, outputPerMillion: 2_000 }

/** A catalogue that every version reads. */
export const catalogue = (baseUrl: string): string => {
  const at = `protocol: openai, baseUrl: "${baseUrl}", apiKey: "\${PROVIDER_SECRET}"`
  const priced = `price: ${JSON.stringify(price)}`
  return `
providers:
  free: { ${at}, redispatch: always, retry: { times: 0 }, breaker: { enabled: false }, limits: { adaptive: false } }
  local: { protocol: local }
  paid: { ${at}, redispatch: neverSent, retry: { times: 0 }, breaker: { enabled: false }, limits: { adaptive: false } }
models:
  free-chat: { workload: chat, targets: [{ provider: free }], ${priced} }
  paid-chat: { workload: chat, targets: [{ provider: paid }], ${priced} }
  local-video: { workload: video, targets: [{ provider: local }] }
  embedding: { workload: embeddings, targets: [{ provider: paid }], ${priced} }
`
}

/** Ingresses serve for this long after SIGTERM, so that the load balancer notices, also if its process pauses. */
export const environment = { DRAIN_DELAY_MS: "3000" }

/** Limits and a budget that no request reaches, so that every version takes part in counting them. */
const flags = "--concurrent 1000 --requests-per-minute 1000000 --tokens-per-minute 100000000 --budget 1000".split(" ")

export interface Key {
  readonly id: string
  readonly key: string
}

/** Creates a key with the command of the gateway's release. */
export const createKey = async (gateway: Gateway, name: string): Promise<Key> => {
  const output = await gateway.admin("keys", "create", "--name", name, ...flags)
  const [id] = /key_\w+/.exec(output) ?? []
  const [key] = /sk-gw-\w+/.exec(output) ?? []
  if (id === undefined || key === undefined) throw new Error(`no key in the output of keys create:\n${output}`)
  await gateway.untilKnown(key)
  return { id, key }
}
