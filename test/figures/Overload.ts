/** Three times the load that a gateway can serve: its throughput, and the time until it rejects the rest. */
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { askChat, Load } from "../fixture/client/Load.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { residentMb } from "../fixture/gateway/ProcessStatus.ts"
import { percentile } from "./Percentile.ts"

const slots = 4
const callMs = 200

/** The workers' settings. */
export const environment = { WORKER_SLOTS: String(slots) }

/** The clients' timeout, in seconds. */
const patience = 2

export interface OverloadReport {
  /** Answers per second at the capacity, and at three times as many requests. */
  readonly best: number
  readonly overloaded: number
  readonly rejected: number
  /** The 95th percentile of the time of a rejection, in milliseconds, and the median. */
  readonly rejectedWithinMs: number
  readonly halfRejectedWithinMs: number
  /** Requests neither answered nor rejected in time. */
  readonly late: number
  /** The memory growth of ingress, in MB. */
  readonly grownMb: number
}

export const overload = async (gateway: Gateway<NatsAddress>, forMs: number): Promise<OverloadReport> => {
  gateway.provider.behave({ kind: "silent", forMs: callMs })
  const ask = (_: number, id: string) => ({
    ...askChat("paid-chat", id),
    // the header of official clients
    headers: { "x-stainless-timeout": String(patience) }
  })
  const rateOf = async (options: { readonly clients: number; readonly perSecond?: number }) => {
    const load = new Load(gateway, { ...options, ask, patienceMs: 1_000 * patience })
    // warm-up
    await load.untilWhole(10 * slots)
    const from = { at: performance.now(), index: load.entries.length }
    await new Promise((resolve) => setTimeout(resolve, forMs))
    const entries = load.entries.slice(from.index)
    const seconds = (performance.now() - from.at) / 1_000
    await load.stop()
    return { entries, perSecond: entries.filter(({ outcome }) => outcome.kind === "whole").length / seconds }
  }
  const best = await rateOf({ clients: 2 * slots })
  const before = await residentMb(gateway.ingress.pid)
  const perSecond = 3 * best.perSecond
  const overloaded = await rateOf({ clients: Math.ceil(2 * patience * perSecond), perSecond })
  const rejected = overloaded.entries.filter(({ outcome }) => outcome.kind === "refused")
  const rejectedMs = rejected.map(({ tookMs }) => tookMs)
  return {
    best: best.perSecond,
    overloaded: overloaded.perSecond,
    rejected: rejected.length,
    rejectedWithinMs: percentile(rejectedMs, 0.95),
    halfRejectedWithinMs: percentile(rejectedMs, 0.5),
    late: overloaded.entries.filter(({ outcome }) => outcome.kind !== "refused" && outcome.kind !== "whole").length,
    grownMb: await residentMb(gateway.ingress.pid) - before
  }
}
