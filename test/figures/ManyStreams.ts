/**
 * Thousands of open streams: whether all complete, the memory of each, and the time until a mass disconnect reaches the
 * provider.
 */
import { eventually } from "../fixture/general/Eventually.ts"
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { residentMb } from "../fixture/gateway/ProcessStatus.ts"
import { openStream, type RawStream } from "../fixture/client/RawStream.ts"

/** The gateway's settings for this many streams. */
export const environment = (streams: number) => ({
  WORKER_SLOTS: String(streams),
  GATEWAY_QUEUE_LIMIT: String(2 * streams),
  GATEWAY_TENANT_QUEUE_LIMIT: String(2 * streams),
  GATEWAY_QUEUE_TIMEOUT_MS: "120000"
})

/** How many connect at the same time. */
const atOnce = 100

/** Opens this many streams, which the provider holds after two events. */
const openMany = async (gateway: Gateway<NatsAddress>, count: number): Promise<ReadonlyArray<RawStream>> => {
  gateway.provider.behave({ kind: "hold", after: 2 })
  const open: Array<RawStream> = []
  while (open.length < count) {
    const more = Math.min(atOnce, count - open.length)
    open.push(...await Promise.all(Array.from({ length: more }, () => openStream(gateway, "paid-chat"))))
  }
  return open
}

/** The time until no provider call is open after this many clients disconnect at once, in milliseconds. */
export const abortAll = async (gateway: Gateway<NatsAddress>, count: number): Promise<number> => {
  const streams = await openMany(gateway, count)
  const left = performance.now()
  for (const { leave } of streams) leave()
  await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === 0, 60_000)
  return performance.now() - left
}

export interface OpenStreamsReport {
  readonly whole: number
  /** The memory growth of each process per stream, in KB. */
  readonly workerKb: number
  readonly ingressKb: number
}

/** Opens this many streams, after a smaller number as warm-up, and completes them. */
export const openStreams = async (gateway: Gateway<NatsAddress>, count: number): Promise<OpenStreamsReport> => {
  const { ingress, provider, workers: [worker] } = gateway
  const complete = async (streams: ReadonlyArray<RawStream>) => {
    provider.release()
    const ends = await Promise.all(streams.map(({ rest }) => rest()))
    return ends.filter((end) => end.includes("data: [DONE]")).length
  }
  await complete(await openMany(gateway, count / 10))
  const memory = async () => ({ worker: await residentMb(worker?.pid ?? 0), ingress: await residentMb(ingress.pid) })
  const before = await memory()
  const streams = await openMany(gateway, count)
  const after = await memory()
  return {
    whole: await complete(streams),
    workerKb: 1_024 * (after.worker - before.worker) / count,
    ingressKb: 1_024 * (after.ingress - before.ingress) / count
  }
}
