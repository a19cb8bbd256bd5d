/** Three times as many requests as can be served: how many are, and how soon the others are told that they are not. */
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { askChat, Load } from "../fixture/client/Load.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { residentMb } from "../fixture/gateway/ProcessStatus.ts"
import { percentile } from "./Percentile.ts"

const slots = 4
const callMs = 200

/** What the workers of its gateway need. */
export const environment = { WORKER_SLOTS: String(slots) }

/** How long clients wait for their answer, in seconds. */
const patience = 2

export interface OverloadReport {
  /** Answers per second where as many ask as are served, and where three times as many do. */
  readonly best: number
  readonly overloaded: number
  readonly refused: number
  /** In how many milliseconds most of those turned away were told so. */
  readonly toldWithinMs: number
  /** Requests that were neither answered nor turned away in time. */
  readonly late: number
  /** By how much the memory of ingress has grown, in MB. */
  readonly grownMb: number
}

export const overload = async (gateway: Gateway<NatsAddress>, forMs: number): Promise<OverloadReport> => {
  gateway.provider.behave({ kind: "silent", forMs: callMs })
  const ask = (_: number, id: string) => ({
    ...askChat("paid-chat", id),
    // as official clients say it
    headers: { "x-stainless-timeout": String(patience) }
  })
  const rateOf = async (options: { readonly clients: number; readonly perSecond?: number }) => {
    const load = new Load(gateway, { ...options, ask, patienceMs: 1_000 * patience })
    // until it is as it will be
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
  const refused = overloaded.entries.filter(({ outcome }) => outcome.kind === "refused")
  return {
    best: best.perSecond,
    overloaded: overloaded.perSecond,
    refused: refused.length,
    toldWithinMs: percentile(refused.map(({ tookMs }) => tookMs), 0.95),
    late: overloaded.entries.filter(({ outcome }) => outcome.kind !== "refused" && outcome.kind !== "whole").length,
    grownMb: await residentMb(gateway.ingress.pid) - before
  }
}
