/**
 * A gateway under load for as long as one likes, and what it holds before and after: memory, sockets and timers of every
 * process, connections, subscriptions, streams and consumers at NATS. All of it has to come back to where it was.
 */
import { openHandles, residentMb } from "../fixture/gateway/ProcessStatus.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { type Insight, inspect, inspectable } from "../fixture/gateway/Inspector.ts"
import { untilNoJobs } from "../fixture/nats/JobStream.ts"
import { type Ask, askChat, Load } from "../fixture/client/Load.ts"
import { openStream } from "../fixture/client/RawStream.ts"
import { sampleRequests } from "../fixture/client/Requests.ts"
import { workloads } from "../../shared/contract/Operation.ts"

export interface SoakOptions {
  readonly forMs: number
  readonly clients: number
  /** Where NATS tells what it holds. */
  readonly monitor: string
  readonly log: (line: string) => void
}

/** What a process holds. */
interface Held extends Insight {
  readonly name: string
  readonly handles: number
  readonly residentMb: number
}

/** What NATS holds. */
interface Kept {
  readonly connections: number
  readonly subscriptions: number
  readonly streams: number
  readonly consumers: number
}

export interface SoakReport {
  readonly requests: number
  readonly tally: Readonly<Record<string, number>>
  readonly before: { readonly processes: ReadonlyArray<Held>; readonly nats: Kept }
  readonly after: { readonly processes: ReadonlyArray<Held>; readonly nats: Kept }
  /** What has not come back to where it was. */
  readonly grown: ReadonlyArray<string>
}

/** How the services of the gateway have to be started. */
export const environment = inspectable
export const services = ["images", "video", "embeddings", "rerank", "speech"]

/** How much more heap is no growth, in MB: code that was compiled meanwhile, and caches that have a bound. */
const heapSlackMb = 12

/** How many more sockets are none: one may be on its way to be closed. */
const handleSlack = 4

/** Connections that clients and providers keep open for further use are closed within this many milliseconds. */
const idleMs = 90_000

const look = async (gateway: Gateway, monitor: string) => {
  const processes = await Promise.all(gateway.processes.map(async (process): Promise<Held> => ({
    name: process.name,
    ...await inspect(process),
    handles: await openHandles(process.pid),
    residentMb: await residentMb(process.pid)
  })))
  const [varz, jsz] = await Promise.all(
    ["varz", "jsz"].map(async (page) => (await fetch(`${monitor}/${page}`)).json() as Promise<Kept>)
  )
  const { connections = 0, subscriptions = 0 } = varz ?? {}
  const { consumers = 0, streams = 0 } = jsz ?? {}
  return { processes, nats: { connections, subscriptions, streams, consumers } }
}

type Sight = Awaited<ReturnType<typeof look>>

const grownSince = (before: Sight, after: Sight): ReadonlyArray<string> => [
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

/** Chat of every kind, now and then an operation of another workload. */
const ask = (index: number, id: string): Ask => {
  const sample = index % 8 === 7 ? sampleRequests[Math.floor(index / 8) % sampleRequests.length] : undefined
  return sample ?? askChat(index % 2 === 0 ? "free-chat" : "paid-chat", id, { stream: index % 4 < 2 })
}

export const soak = async (gateway: Gateway, options: SoakOptions): Promise<SoakReport> => {
  const { clients, forMs, log, monitor } = options
  const { provider } = gateway
  const settled = async () => {
    for (const workload of workloads) await untilNoJobs(gateway.nats, 120_000, workload)
    await eventually(() => Promise.resolve(provider.open), (open) => open === 0, 30_000)
  }
  const loaded = async (ms: number) => {
    const until = performance.now() + ms
    const load = new Load(gateway, { clients, patienceMs: 60_000, ask })
    await load.untilWhole(2 * sampleRequests.length * 8, 0, 300_000)
    while (performance.now() < until) {
      // clients that leave in the middle
      const streams = await Promise.all(Array.from({ length: 4 }, () => openStream(gateway, "paid-chat")))
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      for (const { leave } of streams) leave()
      provider.requests.length = 0
      load.calls.clear()
    }
    await load.stop()
    await settled()
    return load
  }
  provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  await loaded(0)
  const before = await look(gateway, monitor)
  log(`before: ${JSON.stringify(before.nats)}`)
  const load = await loaded(forMs)
  const after = await eventually(
    () => look(gateway, monitor),
    (sight) => grownSince(before, sight).length === 0,
    idleMs
  ).catch(() => look(gateway, monitor))
  return { requests: load.entries.length, tally: load.tally, before, after, grown: grownSince(before, after) }
}
