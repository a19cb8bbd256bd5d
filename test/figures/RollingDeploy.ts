/**
 * A rolling deploy of all services under load: a new process is ready before the old one gets SIGTERM, as in Kubernetes, and
 * the next service follows once the old process has ended.
 */
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { type Ask, askChat, type Entry, Load } from "../fixture/client/Load.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { sampleRequests } from "../fixture/client/Requests.ts"

/** The time for load balancers to notice that an ingress is not ready any more. */
export const environment = { DRAIN_DELAY_MS: "3000" }

export interface RollingDeployOptions {
  /** Services to replace besides ingresses and chat workers. */
  readonly services: ReadonlyArray<string>
  readonly perSecond: number
  readonly clients: number
  readonly log: (line: string) => void
}

export interface RollingDeployReport {
  readonly requests: number
  readonly perSecond: number
  readonly failed: ReadonlyArray<Entry>
}

export const rollingDeploy = async (
  gateway: Gateway<NatsAddress>,
  { clients, log, perSecond, services }: RollingDeployOptions
): Promise<RollingDeployReport> => {
  gateway.provider.behave({ kind: "paced", chunks: 5, everyMs: 20 })
  // mostly chat, with some requests for the other services
  const others = sampleRequests.filter(({ model }) => services.some((service) => model.startsWith(prefixOf(service))))
  const ask = (index: number, id: string): Ask => {
    const other = index % 10 === 9 ? others[Math.floor(index / 10) % others.length] : undefined
    return other ?? askChat(index % 2 === 0 ? "free-chat" : "paid-chat", id, { stream: index % 4 < 2 })
  }
  const load = new Load(gateway, { clients, patienceMs: 60_000, perSecond, ask })
  await load.untilWhole(2 * clients)
  const from = { at: performance.now(), count: load.entries.length }

  const replace = async (old: { readonly name: string; readonly terminate: () => Promise<unknown> }) => {
    await (old.name === "ingress" ? gateway.startIngress() : gateway.startWorker({}, old.name))
    const exit = await old.terminate()
    log(`${old.name} replaced, exit ${String(exit)}`)
  }
  for (const process of gateway.processes.filter(({ hasExited }) => !hasExited)) await replace(process)
  await load.untilWhole(2 * clients, performance.now())
  const tookMs = performance.now() - from.at
  const count = load.entries.length - from.count
  await load.stop()
  return {
    requests: load.entries.length,
    perSecond: 1_000 * count / tookMs,
    failed: load.entries.filter(({ outcome }) => outcome.kind !== "whole")
  }
}

/** The prefix of a service's built-in models. */
const prefixOf = (service: string): string => `local-${service.replace(/s$/, "")}`
