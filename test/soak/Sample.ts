/** The resources of a gateway's processes and of NATS at one moment. */
import { inspectBusy } from "../fixture/gateway/Inspector.ts"
import { localPorts, openHandles, residentMb } from "../fixture/gateway/ProcessStatus.ts"
import type { ServiceProcess } from "../fixture/gateway/ServiceProcess.ts"

/** The resources of one process, by name. */
export type Resources = Readonly<Record<string, number>>

export interface Sample {
  /** The time since the first sample, in milliseconds. */
  readonly atMs: number
  /** The resources by the name of the process. */
  readonly of: ReadonlyMap<string, Resources>
}

interface ServerStatus {
  readonly port: number
  readonly connections: number
  readonly subscriptions: number
}

interface Connection {
  readonly port: number
  readonly subscriptions: number
}

interface Stream {
  readonly name: string
  readonly state: { readonly bytes: number; readonly messages: number }
}

interface Account {
  readonly stream_detail?: ReadonlyArray<Stream>
}

const mb = 1024 * 1024

const ask = async <A>(monitor: string, page: string): Promise<A> =>
  (await fetch(`${monitor}/${page}`)).json() as Promise<A>

/** The resources of a process of the gateway; its heap after garbage collection, and what V8 then holds of the system's memory. */
const processResources = async (
  process: ServiceProcess,
  natsPort: number,
  connections: ReadonlyArray<Connection>
): Promise<Resources> => {
  const [{ committedMb, heapMb, resources }, ports] = await Promise.all([
    inspectBusy(process),
    localPorts(process.pid, natsPort)
  ])
  const own = connections.filter(({ port }) => ports.has(port))
  return {
    "RSS (MB)": await residentMb(process.pid),
    "heap (MB)": heapMb,
    "V8 (MB)": committedMb,
    handles: await openHandles(process.pid),
    timers: resources["Timeout"] ?? 0,
    subscriptions: own.reduce((sum, { subscriptions }) => sum + subscriptions, 0)
  }
}

/** The resources of NATS, with what is stored in buckets and in object stores. */
const natsResources = async (pid: number, status: ServerStatus, monitor: string): Promise<Resources> => {
  const jsz = await ask<{ readonly consumers: number; readonly account_details?: ReadonlyArray<Account> }>(
    monitor,
    "jsz?streams=true"
  )
  const streams = (jsz.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail)
  const stored = (prefix: string) =>
    streams.filter(({ name }) => name.startsWith(prefix)).reduce((sum, { state: { bytes } }) => sum + bytes, 0) / mb
  return {
    "RSS (MB)": await residentMb(pid),
    connections: status.connections,
    subscriptions: status.subscriptions,
    streams: streams.length,
    consumers: jsz.consumers,
    "buckets (MB)": stored("KV_"),
    "object store (MB)": stored("OBJ_")
  }
}

export interface Ground {
  /** The processes that are never restarted, by name. */
  readonly processes: ReadonlyMap<string, ServiceProcess>
  readonly natsPid: number
  /** The address of NATS's monitoring. */
  readonly monitor: string
}

export const takeSample = async ({ monitor, natsPid, processes }: Ground, atMs: number): Promise<Sample> => {
  const status = await ask<ServerStatus>(monitor, "varz")
  const { connections } = await ask<{ readonly connections: ReadonlyArray<Connection> }>(monitor, "connz?limit=4096")
  const of = new Map<string, Resources>()
  for (const [name, process] of processes) of.set(name, await processResources(process, status.port, connections))
  of.set("nats", await natsResources(natsPid, status, monitor))
  return { atMs, of }
}
