/**
 * Runs a gateway under load for hours: open streams, mixed requests, clients that disconnect, and deploys. One process of each kind
 * is never restarted. Samples the resources of these processes and of NATS.
 */
import { Effect } from "effect"
import { setTimeout as sleep } from "node:timers/promises"
import { type Outcome, tally } from "../fixture/client/ChatClient.ts"
import { type Ask, askChat, type Entry, Load } from "../fixture/client/Load.ts"
import { openStream } from "../fixture/client/RawStream.ts"
import { sampleRequests } from "../fixture/client/Requests.ts"
import { Gateway, type GatewayOptions, otherWorkloads, plain, providerKey } from "../fixture/gateway/Gateway.ts"
import { inspectable } from "../fixture/gateway/Inspector.ts"
import { freePort, type ServiceProcess } from "../fixture/gateway/ServiceProcess.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import { untilNoJobs } from "../fixture/nats/JobStream.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { environment as forStreams } from "../figures/ManyStreams.ts"
import { type Sample, takeSample } from "./Sample.ts"

export interface SoakOptions {
  readonly forMs: number
  /** The run goes on until so many deploys have ended, but at most for five times `forMs`. */
  readonly leastDeploys: number
  /** How many streams are open at once, and how long each takes, in milliseconds. */
  readonly streams: number
  readonly streamMs: number
  /** The number of concurrent clients with other requests. */
  readonly clients: number
  /** Every process except those that are never restarted is replaced this often, in milliseconds. */
  readonly deployEveryMs: number
  readonly sampleEveryMs: number
  /** The address of NATS's monitoring. */
  readonly monitor: string
  readonly log: (line: string) => void
}

export interface SoakReport {
  readonly samples: ReadonlyArray<Sample>
  /** Before the first request, and after the last. */
  readonly atRest: readonly [before: Sample, after: Sample]
  readonly requests: number
  readonly streams: number
  readonly deploys: number
  /** Requests and streams without a complete answer. */
  readonly failed: Readonly<Record<string, number>>
}

/** The model of the open streams. */
const streamModel = "soak-stream"

const gatewayFor = (streams: number): GatewayOptions => ({
  ingresses: 2,
  workers: 2,
  services: otherWorkloads,
  environment: { ...inspectable, ...forStreams(Math.max(64, 2 * streams)), DRAIN_DELAY_MS: "3000" },
  providers: (baseUrl) =>
    `  slow: { protocol: openai, baseUrl: "${baseUrl}", apiKey: ${providerKey}, idempotent: false, ${plain} }`,
  models: `  ${streamModel}: { workload: chat, targets: [{ provider: slow }] }`
})

/** A gateway for this many open streams, and the address of its NATS's monitoring. */
export const monitoredGateway = Effect.fnUntraced(function*(streams: number) {
  const port = yield* Effect.promise(freePort)
  const nats = yield* NatsServer.make({ words: ["--http_port", String(port)] })
  return { gateway: yield* Gateway.makeOn(nats, gatewayFor(streams)), monitor: `http://127.0.0.1:${port}` }
})

/** Pieces of an open stream. */
const pieces = 12

/**
 * Small requests whose results are not stored. Videos, compactions, stored responses and pictures behind URLs are left out or changed:
 * they are stored for an hour or longer, and would make the stores grow with the load.
 */
const excluded = ["video.generations", "responses.compact"]
const samples = sampleRequests.filter(({ operation }) => !excluded.includes(operation)).map((sample) => {
  const more = sample.operation === "responses"
    ? { store: false }
    : sample.operation === "images.generations"
    ? { response_format: "b64_json" }
    : {}
  return { ...sample, body: { ...sample.body, ...more } }
})

/** Chat of every kind, and some requests of other workloads. */
const ask = (index: number, id: string): Ask => {
  const sample = index % 8 === 7 ? samples[Math.floor(index / 8) % samples.length] : undefined
  return sample ?? askChat(index % 2 === 0 ? "free-chat" : "paid-chat", id, { stream: index % 4 < 2 })
}

/** A load that drops its complete answers, so that it can run for hours. */
class EndlessLoad extends Load {
  whole = 0
  readonly #failed: Array<Entry> = []

  forget(log: (line: string) => void): void {
    const entries = this.entries.splice(0)
    const failed = entries.filter(({ outcome }) => outcome.kind !== "whole")
    for (const { ingress, model, outcome, tookMs } of failed) {
      log(`failed after ${tookMs.toFixed(0)} ms: ${model} at ingress ${ingress.pid}: ${JSON.stringify(outcome)}`)
    }
    this.whole += entries.length - failed.length
    this.#failed.push(...failed)
    this.calls.clear()
  }

  /** The outcomes of the requests without a whole answer. */
  get failed(): ReadonlyArray<Outcome> {
    return this.#failed.map(({ outcome }) => outcome)
  }
}

export const soak = async (gateway: Gateway<NatsServer>, options: SoakOptions): Promise<SoakReport> => {
  const { clients, deployEveryMs, forMs, leastDeploys, log, monitor, sampleEveryMs, streamMs, streams } = options
  const { nats, provider } = gateway
  const lasting = new Map<string, ServiceProcess>()
  const replaceable = new Map<string, ServiceProcess>()
  await gateway.startConsole()
  // clients that leave use the first ingress
  for (const process of new Set([...gateway.ingresses, ...gateway.processes])) {
    if (lasting.has(process.name)) replaceable.set(process.name, process)
    else lasting.set(process.name, process)
  }
  const start = (name: string) =>
    name === "ingress"
      ? gateway.startIngress()
      : name === "console"
      ? gateway.startConsole()
      : gateway.startWorker({}, name)
  for (const name of lasting.keys()) if (!replaceable.has(name)) replaceable.set(name, await start(name))
  const began = performance.now()
  const look = () => takeSample({ processes: lasting, natsPid: nats.pid ?? 0, monitor }, performance.now() - began)
  const before = await look()
  provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  provider.behave({ kind: "paced", chunks: pieces, everyMs: streamMs / pieces }, { model: streamModel })
  const mixed = new EndlessLoad(gateway, { clients, patienceMs: 120_000, ask })
  const open = new EndlessLoad(gateway, {
    clients: streams,
    patienceMs: 10 * streamMs + 120_000,
    // streams begin one after the other, so that they also end one after the other
    perSecond: 1.1 * streams / (streamMs / 1_000),
    ask: (_, id) => askChat(streamModel, id, { stream: true })
  })

  const stopping = new AbortController()
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
  let deploys = 0
  const end = async (old: ServiceProcess) => {
    await old.terminate()
    // a process in a list keeps its whole log in memory
    for (const list of [gateway.processes, gateway.ingresses, gateway.workers]) {
      const index = list.indexOf(old)
      if (index >= 0) list.splice(index, 1)
    }
  }
  /** Replaces processes one after the other. The former ones finish their streams meanwhile. */
  const deploy = async () => {
    const ending: Array<Promise<void>> = []
    for (const name of lasting.keys()) {
      if (stopping.signal.aborted) break
      const old = replaceable.get(name)
      replaceable.set(name, await start(name))
      if (old !== undefined) ending.push(end(old))
    }
    await Promise.all(ending)
    if (stopping.signal.aborted) return
    log(`deploy ${++deploys} has ended`)
  }
  const deploying = (async () => {
    while (!stopping.signal.aborted) {
      await pause(deployEveryMs)
      if (!stopping.signal.aborted) await deploy()
    }
  })()
  const leaving = (async () => {
    while (!stopping.signal.aborted) {
      const opened = await Promise.all(Array.from({ length: 4 }, () => openStream(gateway, "paid-chat")))
      await pause(1_000)
      for (const { leave } of opened) leave()
    }
  })()

  const hasEnded = () => {
    const ranMs = performance.now() - began
    return ranMs >= forMs && (deploys >= leastDeploys || ranMs >= 5 * forMs)
  }
  const taken: Array<Sample> = []
  while (!hasEnded()) {
    await sleep(sampleEveryMs)
    const sample = await look()
    taken.push(sample)
    provider.requests.length = 0
    for (const load of [mixed, open]) load.forget(log)
    for (const process of gateway.processes) process.shortenLog()
    const memory = [...sample.of].map(([name, one]) =>
      [name, one["heap (MB)"]?.toFixed(1), one["RSS (MB)"]?.toFixed(0)].filter((word) => word !== undefined).join(" ")
    )
    log(
      `${(sample.atMs / 60_000).toFixed(1)} min, ${provider.open} calls open, MB of heap and RSS: ${memory.join(", ")}`
    )
  }
  stopping.abort()
  await Promise.all([mixed.stop(), open.stop(), deploying, leaving])
  for (const load of [mixed, open]) load.forget(log)
  await provider.until(() => provider.open === 0)
  await untilNoJobs(nats)
  // the server counts a connection until it has read its end; if one stays, the report says so
  const connections = ({ of }: Sample) => of.get("nats")?.["connections"] ?? 0
  const after = await eventually(look, (sample) => connections(sample) <= connections(before), 30_000).catch(look)
  return {
    samples: taken,
    atRest: [before, after],
    requests: mixed.whole,
    streams: open.whole,
    deploys,
    failed: tally([...mixed.failed, ...open.failed])
  }
}
