/**
 * A gateway under load, and its resources before and after: memory, sockets and timers of every process, and connections,
 * subscriptions, streams and consumers of NATS. All of them must return to their level before.
 */
import { openHandles, residentMb } from "../fixture/gateway/ProcessStatus.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import { type Gateway, otherWorkloads } from "../fixture/gateway/Gateway.ts"
import { type Insight, inspect, inspectable } from "../fixture/gateway/Inspector.ts"
import { untilNoJobs } from "../fixture/nats/JobStream.ts"
import { type Ask, askChat, Load } from "../fixture/client/Load.ts"
import { openStream } from "../fixture/client/RawStream.ts"
import { sampleRequests } from "../fixture/client/Requests.ts"
import { workloads } from "../../shared/contract/Operation.ts"

export interface SoakOptions {
  readonly forMs: number
  readonly clients: number
  /** The address of NATS's monitoring. */
  readonly monitor: string
  readonly log: (line: string) => void
}

/** A process's resources. */
interface ProcessResources extends Insight {
  readonly name: string
  readonly handles: number
  readonly residentMb: number
}

/** The resources of NATS. */
interface NatsResources {
  readonly connections: number
  readonly subscriptions: number
  readonly streams: number
  readonly consumers: number
}

export interface SoakReport {
  readonly requests: number
  readonly tally: Readonly<Record<string, number>>
  readonly before: { readonly processes: ReadonlyArray<ProcessResources>; readonly nats: NatsResources }
  readonly after: { readonly processes: ReadonlyArray<ProcessResources>; readonly nats: NatsResources }
  /** The resources that have not returned to their level before. */
  readonly grown: ReadonlyArray<string>
}

/** The settings of the gateway's services. */
export const environment = inspectable
export const services = otherWorkloads

/** Tolerated heap growth in MB, for code compiled meanwhile and bounded caches. */
const heapSlackMb = 12

/** Tolerated growth of handles: a socket may be about to close. */
const handleSlack = 4

/** Clients and providers close idle connections within this many milliseconds. */
const idleMs = 90_000

const takeSnapshot = async (gateway: Gateway, monitor: string) => {
  const processes = await Promise.all(gateway.processes.map(async (process): Promise<ProcessResources> => ({
    name: process.name,
    ...await inspect(process),
    handles: await openHandles(process.pid),
    residentMb: await residentMb(process.pid)
  })))
  const [varz, jsz] = await Promise.all(
    ["varz", "jsz"].map(async (page) => (await fetch(`${monitor}/${page}`)).json() as Promise<NatsResources>)
  )
  const { connections = 0, subscriptions = 0 } = varz ?? {}
  const { consumers = 0, streams = 0 } = jsz ?? {}
  return { processes, nats: { connections, subscriptions, streams, consumers } }
}

type Snapshot = Awaited<ReturnType<typeof takeSnapshot>>

const grownSince = (before: Snapshot, after: Snapshot): ReadonlyArray<string> => [
  ...after.processes.flatMap(({ handles, heapMb, name, resources }, index) => {
    const then = before.processes[index]
    if (then === undefined) return []
    const more: Array<string> = []
    if (heapMb > then.heapMb + heapSlackMb) {
      more.push(`${name}: heap ${then.heapMb.toFixed(1)} to ${heapMb.toFixed(1)} MB`)
    }
    if (handles > then.handles + handleSlack) more.push(`${name}: handles ${then.handles} to ${handles}`)
    const timers = (resources["Timeout"] ?? 0) - (then.resources["Timeout"] ?? 0)
    if (timers > handleSlack) more.push(`${name}: ${timers} more timers`)
    return more
  }),
  ...(["connections", "subscriptions", "streams", "consumers"] as const).flatMap((what) =>
    after.nats[what] > before.nats[what] ? [`NATS: ${what} ${before.nats[what]} to ${after.nats[what]}`] : []
  )
]

/** Chat of every kind, and some requests of other workloads. */
const ask = (index: number, id: string): Ask => {
  const sample = index % 8 === 7 ? sampleRequests[Math.floor(index / 8) % sampleRequests.length] : undefined
  return sample ?? askChat(index % 2 === 0 ? "free-chat" : "paid-chat", id, { stream: index % 4 < 2 })
}

export const soak = async (gateway: Gateway, options: SoakOptions): Promise<SoakReport> => {
  const { clients, forMs, log, monitor } = options
  const { provider } = gateway
  const settle = async () => {
    for (const workload of workloads) await untilNoJobs(gateway.nats, 120_000, workload)
    await eventually(() => Promise.resolve(provider.open), (open) => open === 0, 30_000)
  }
  const runLoad = async (ms: number) => {
    const until = performance.now() + ms
    const load = new Load(gateway, { clients, patienceMs: 60_000, ask })
    await load.untilWhole(2 * sampleRequests.length * 8, 0, 300_000)
    while (performance.now() < until) {
      // clients that disconnect in the middle
      const streams = await Promise.all(Array.from({ length: 4 }, () => openStream(gateway, "paid-chat")))
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      for (const { leave } of streams) leave()
      provider.requests.length = 0
      load.calls.clear()
    }
    await load.stop()
    await settle()
    return load
  }
  provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  await runLoad(0)
  const before = await takeSnapshot(gateway, monitor)
  log(`before: ${JSON.stringify(before.nats)}`)
  const load = await runLoad(forMs)
  const after = await eventually(
    () => takeSnapshot(gateway, monitor),
    (snapshot) => grownSince(before, snapshot).length === 0,
    idleMs
  ).catch(() => takeSnapshot(gateway, monitor))
  return { requests: load.entries.length, tally: load.tally, before, after, grown: grownSince(before, after) }
}
