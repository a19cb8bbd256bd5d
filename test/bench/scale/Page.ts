/**
 * Renders the page about scale from the measured costs: simulated runs, the capacity of each part, and how to grow beyond it.
 */
import type { Costs } from "./Costs.ts"
import { type Load, simulate, type Topology } from "./Simulation.ts"

interface Run {
  readonly name: string
  readonly topology: Topology
  readonly load: Load
}

/** Short answers of half a second. 100,000 of them a second use 78 % of a thousand workers with 64 slots. */
const load = (rate: number): Load => ({ rate, serviceMs: 500 })

/** The number of processes that leaves a quarter of their time free. */
const enough = (rate: number, micros: number): number => Math.ceil((rate * micros) / 1_000_000 / 0.75)

const round = (value: number): string => value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(2)
const percent = (share: number): string => `${Math.round(share * 100)} %`

const row = (costs: Costs, { load, name, topology }: Run): string => {
  const outcome = simulate(costs, topology, load)
  const full = outcome.rate < 0.95 * load.rate
  return `| ${name} | ${load.rate} | ${topology.ingresses} | ${topology.streams} × R${topology.replicas} | ${topology.workers} | ${
    Math.round(outcome.rate)
  }${full ? " **full**" : ""} | ${outcome.waitP50.toFixed(1)} | ${outcome.waitP99.toFixed(1)} | ${
    percent(outcome.ingressBusy)
  } | ${percent(outcome.streamBusy)} | ${percent(outcome.slotsBusy)} |`
}

export const page = (costs: Costs): string => {
  const perJob = (replicas: 1 | 3) => (costs.store + costs.acknowledge) * (replicas === 3 ? 2 : 1) + costs.deliver
  const streamLimit = (replicas: 1 | 3) => 1_000_000 / perJob(replicas)
  const shards = enough(100_000, perJob(3))
  const ingresses = enough(100_000, costs.ingress)
  const workers = (rate: number) => Math.max(2, Math.ceil(rate / 100))
  const single = (rate: number, replicas: 1 | 3): Run => ({
    name: "one stream",
    topology: { ingresses: enough(rate, costs.ingress), streams: 1, replicas, workers: workers(rate), slots: 64 },
    load: load(rate)
  })
  const large = (name: string, changed: Partial<Topology>): Run => ({
    name,
    topology: { ingresses, streams: shards, replicas: 3, workers: 1_000, slots: 64, ...changed },
    load: load(100_000)
  })
  const steps = [0.25, 0.5, 0.8, 0.95, 1.2].map((share) => Math.round(streamLimit(3) * share / 100) * 100)
  const runs: ReadonlyArray<Run> = [
    ...steps.map((rate) => single(rate, 3)),
    single(Math.round(streamLimit(1) * 0.8 / 100) * 100, 1),
    large("100,000 a second", {}),
    large("the same, half the streams", { streams: Math.ceil(shards / 2) }),
    large("the same, half the ingresses", { ingresses: Math.ceil(ingresses / 2) }),
    large("the same, a fifth fewer workers", { workers: 780 })
  ]
  const openStreams = 50_000
  return `# A thousand workers and 100,000 requests a second

Simulated by \`npm run bench:scale\` with the rules of \`shared/bus\`: fair queues and a window of 64 unclaimed jobs at each
ingress, pull by free slot, acknowledgement at the end; providers answer in 0.5 s, workers have 64 slots. The costs were measured
on the machine that wrote this page: compare the shares, not the figures.

## Costs

| one | CPU time, µs |
|---|---|
| job, in ingress | ${round(costs.ingress)} |
| job, in its worker | ${round(costs.worker)} |
| job stored by NATS | ${round(costs.store)} |
| job delivered by NATS | ${round(costs.deliver)} |
| acknowledgement or progress report of a job | ${round(costs.acknowledge)} |
| frame of 512 bytes relayed by NATS | ${round(costs.frame)} |

Ingress, worker and the sum of NATS's messages are from \`latest.md\`. The messages were measured in bulk and multiplied by
${
    round(costs.amongOthers)
  }, the ratio of that sum to the sum in bulk. Writing to a stream with three replicas is assumed to cost its
leader twice as much.

## Runs

| run | offered /s | ingresses | streams | workers | answered /s | wait p50, ms | p99, ms | busiest ingress | busiest stream | slots |
|---|---|---|---|---|---|---|---|---|---|---|
${runs.map((run) => row(costs, run)).join("\n")}

The wait is the time from a request's arrival to the start of its work.

## The capacity of each part, and how to grow beyond it

* **A stream** has one leading server, which does one thing at a time: ${
    round(streamLimit(3))
  } jobs/s with three replicas,
  ${
    round(streamLimit(1))
  } with one. A growing workload reaches this limit first, because each workload has one stream. Pools do
  not help, because they are consumers of it. Beyond the limit, split the workload over gateways with a NATS account each, and
  divide keys or models among them: these are the streams of the runs above.
* **An ingress** is one Node process: ${round(1_000_000 / costs.ingress)} requests/s. Ingresses share nothing, so add
  more: ${ingresses} for 100,000/s with a quarter to spare. Together they leave up to ${round(ingresses * 64)} jobs
  unclaimed in a stream. Lower \`GATEWAY_WINDOW\` as their number grows, because fairness between tenants applies only to
  jobs outside the window.
* **NATS as a whole** spends ${round(perJob(3) + 2 * costs.frame)} µs on a job with two frames, which is ${
    Math.ceil((perJob(3) + 2 * costs.frame) * 0.1)
  } cores for 100,000/s. A cluster
  spreads the leaders of streams over its servers; accounts can have their own clusters, and leaf nodes connect the clients of a
  region to them.
* **Streamed answers** cost their frames: at 50 frames a second, ${
    round(1_000_000 / costs.frame / 50)
  } open streams use one core of NATS. Frames pass through the
  servers of the two sides' connections, not through a leader, so more servers relay more of them.
* **Long jobs** cost even when they send nothing: a worker reports every running job each two seconds. ${
    round(openStreams)
  } of them are
  ${round(openStreams / 2)} reports a second, ${
    percent(openStreams / 2 * costs.acknowledge / 1_000_000)
  } of the capacity of a stream's leader, before any job starts or ends.
* **Workers** are limited by slots, not by CPU: a job takes ${
    round(costs.worker)
  } µs of CPU, and holds its slot until its provider
  has answered. A thousand workers use a thousand of the consumer's 4,096 pull requests.
`
}
