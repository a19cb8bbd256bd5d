/**
 * Injects faults while clients use every operation, and then compares the books: the providers' bills, the usage events, the usage
 * counters and the spending of the keys must agree to the token.
 */
import { Context, DateTime, Effect, Option, Schedule, Stream } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { isLineId } from "../../../shared/batches/lines/Line.ts"
import { queuesIn } from "../../../shared/bus/protocol/Subjects.ts"
import { workloads } from "../../../shared/contract/Operation.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { monthlyTally } from "../../../shared/usage/Tally.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import type { UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { ChaosBatch } from "../../chaos/ChaosBatch.ts"
import { type FaultName, faultNames, type Ground } from "../../chaos/Faults.ts"
import { Strikes } from "../../chaos/Strikes.ts"
import { Load } from "../../fixture/client/Load.ts"
import { otherWorkloads } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { inherited } from "../../fixture/general/Inherited.ts"
import { randomFrom } from "../../fixture/general/Random.ts"
import { untilJobs } from "../../fixture/nats/JobStream.ts"
import type { NatsAddress } from "../../fixture/nats/NatsServer.ts"
import { eventsIn, rowsAt, usageProcess } from "../../fixture/nats/UsageEvents.ts"
import { billUnits } from "../../fixture/provider/answers/Bill.ts"
import { type BilledCall, reconcile, type Reconciliation, tokensOf, unitsIn } from "./Reconcile.ts"
import { ask, catalogue, misbehaviours } from "./Requests.ts"

export interface BillingOptions {
  readonly seed: number
  /** How long to inject faults, in milliseconds. */
  readonly forMs: number
  /** The number of concurrent requests. */
  readonly clients: number
  /** The number of requests of the batch, which may end after the faults. */
  readonly batchLines: number
  /** The longest time between two faults, in milliseconds. */
  readonly everyMs: number
  /** The share of requests during which a provider misbehaves, from 0 to 1. */
  readonly misbehaving: number
  readonly among?: ReadonlyArray<FaultName>
  readonly log: (line: string) => void
}

export interface BillingReport extends Reconciliation {
  /** The outcomes that clients saw. */
  readonly outcomes: Readonly<Record<string, number>>
  /** How often each fault was injected. */
  readonly faults: Readonly<Record<string, number>>
  /** Requests and costs by the events and by the counters, and the costs by the spending of the keys. */
  readonly books: {
    readonly events: Book
    readonly counters: Book
    readonly spentUsd: number
  }
}

interface Book {
  readonly requests: number
  readonly costUsd: number
}

/** The settings of the gateway; add the number of processes. */
export const gatewayOptions = {
  ...catalogue,
  services: [...otherWorkloads, "batches", "batches"],
  wired: true,
  environment: { DRAIN_DELAY_MS: "500", WORKER_TASK_SLOTS: "16" }
} as const

/** How long to wait, in milliseconds: longer than any fault and its consequences. */
const patienceMs = 60_000

/** The budget of each key in US dollars: more than any run costs. */
const budget = 100_000_000

/** The process that counts usage, which is killed and started again. */
class Counting {
  readonly #nats: NatsAddress
  #child: ChildProcess
  kills = 0

  constructor(nats: NatsAddress) {
    this.#nats = nats
    this.#child = this.#start()
  }

  #start(): ChildProcess {
    return spawn(process.execPath, [join(import.meta.dirname, "../../fixture/projector/main.ts")], {
      env: { ...inherited, NATS_URL: this.#nats.url, GATEWAY_PARENT_PIPE: "1" },
      stdio: ["pipe", "ignore", "ignore"]
    })
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL")
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit")
    this.kills++
  }

  async replace(): Promise<void> {
    await this.kill()
    this.#child = this.#start()
  }
}

/** Names the request of an event: a batch line by its number, because a second holder may submit it with another trace. */
const requestOf = ({ id, traceId }: UsageEvent): string => isLineId(id) ? `line ${id.split("-").at(-1)}` : traceId ?? id

const lineIn = (body: string): string | undefined => /"question (\d+)\."/.exec(body)?.[1]

/** The calls that the provider bills, in order of arrival. */
const billedCalls = ({ gateway: { provider } }: Ground): () => ReadonlyArray<BilledCall> => {
  const calls: Array<() => BilledCall> = []
  provider.bill((received, { bytes, units }) => {
    const line = lineIn(received.body.toString())
    const request = line === undefined ? String(received.headers["traceparent"]).slice(3, 35) : `line ${line}`
    calls.push(() => ({
      request,
      units,
      isWhole: received.outcome === "finished" && received.bytesWritten >= bytes
    }))
  })
  return () => calls.map((call) => call())
}

/** Waits until no job of any queue is waiting or running; then every usage event is stored. */
const untilIdle = async ({ gateway: { nats, provider } }: Ground): Promise<void> => {
  const pools = workloads.map((workload) => ({ workload, pool: "default" }))
  for (const { queue } of queuesIn(pools)) {
    await untilJobs(nats, ({ pending, unacknowledged }) => pending === 0 && unacknowledged === 0, queue)
  }
  await eventually(() => Promise.resolve(provider.open), (open) => open === 0, patienceMs)
}

/** The rows of the counters and the spending of the keys, once every event is counted. */
const countedBooks = (nats: NatsAddress, events: ReadonlyArray<UsageEvent>) =>
  Effect.gen(function*() {
    const context = yield* usageProcess(nats, UsageCounters.layerQuery)
    const days = events.map(({ time }) => DateTime.formatIsoDateUtc(DateTime.makeUnsafe(time))).toSorted()
    const by = { from: days[0] ?? "", to: days.at(-1) ?? "", by: ["key", "model", "operation"] } as const
    const rows = yield* rowsAt(Context.get(context, UsageCounters), events.length, by)
    const bucket = yield* openBucket(monthlyTally.bucket).pipe(Effect.provideContext(context))
    const spent = Stream.runFold(
      bucket.matching("*.*"),
      () => 0,
      (sum, { value }) => sum + (Option.getOrUndefined(Option.flatMap(value, monthlyTally.decode))?.value ?? 0)
    )
    const expected = events.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
    const spentUsd = yield* spent.pipe(
      Effect.repeat({
        until: (usd) => usd === expected,
        schedule: Schedule.spaced("100 millis").pipe(Schedule.upTo({ duration: "10 seconds" }))
      }),
      Effect.andThen(spent)
    )
    return { rows, spentUsd }
  }).pipe(Effect.scoped, Effect.timeout(patienceMs))

type Rows = Effect.Success<ReturnType<typeof countedBooks>>["rows"]

/** The differences between counters and events, by key, model and operation. */
const miscounted = (events: ReadonlyArray<UsageEvent>, rows: Rows): ReadonlyArray<string> => {
  const groupOf = (row: { readonly key?: string; readonly model?: string; readonly operation?: string }) =>
    [row.key, row.model, row.operation].join(" ")
  const sums = new Map<string, Record<string, number>>()
  const add = (group: string, name: string, amount: number) => {
    const sum = sums.get(group) ?? {}
    sums.set(group, { ...sum, [name]: (sum[name] ?? 0) + amount })
  }
  for (const event of events) {
    add(groupOf(event), "requests", 1)
    add(groupOf(event), "costUsd", event.costUsd ?? 0)
    for (const unit of billUnits) add(groupOf(event), unit, unitsIn(event)[unit])
  }
  for (const row of rows) {
    add(groupOf(row), "requests", -row.requests)
    add(groupOf(row), "costUsd", -row.costUsd)
    for (const unit of billUnits) add(groupOf(row), unit, -row.usage[unit])
  }
  return [...sums].flatMap(([group, sum]) =>
    Object.values(sum).every((amount) => amount === 0)
      ? []
      : [`the events of ${group} differ from the counters by ${JSON.stringify(sum)}`]
  )
}

/** Events whose cost is not that of their units, each of which costs a dollar. Some operations are free. */
const mispriced = (events: ReadonlyArray<UsageEvent>): ReadonlyArray<string> =>
  events.flatMap((event) => {
    const { costUsd, usage } = event
    const units = Object.values(unitsIn(event)).reduce((sum, amount) => sum + amount, 0)
    const isFree = /token|moderation/iu.test(event.operation)
    const expected = isFree ? 0 : units
    return costUsd === expected || (costUsd === null && usage === null)
      ? []
      : [`priced wrongly: ${JSON.stringify(event)}`]
  })

/** Lines of the batch with two billed calls, which must not happen. */
const paidTwice = (calls: ReadonlyArray<BilledCall>): ReadonlyArray<string> => {
  const lines = calls.filter(({ request, units }) => request.startsWith("line ") && tokensOf(units) > 0)
  const seen = new Set<string>()
  return lines.flatMap(({ request }) =>
    seen.size === seen.add(request).size ? [`batch: ${request} was paid twice`] : []
  )
}

export const billing = async (ground: Ground, options: BillingOptions): Promise<BillingReport> => {
  const { gateway } = ground
  const { among = faultNames, batchLines, clients, everyMs, forMs, log, misbehaving, seed } = options
  const random = randomFrom(seed)
  const start = performance.now()
  const since = () => `${((performance.now() - start) / 1_000).toFixed(1).padStart(6)} s`
  const calls = billedCalls(ground)
  const made = [1, 2, 3].map(() => gateway.createKeyWith({ monthlyBudgetUsd: budget }))
  const keys = (await Promise.all(made)).map(({ key }) => key)
  const counting = new Counting(gateway.nats)
  try {
    gateway.provider.behave({ kind: "paced", chunks: 8, everyMs: 25 })
    const load = new Load(gateway, {
      clients,
      patienceMs,
      ask: (index) => {
        if (random() < misbehaving) {
          gateway.provider.behaveOnce(misbehaviours[Math.floor(random() * misbehaviours.length)]!)
        }
        return ask(index, random, keys)
      }
    })
    await load.untilWhole(clients)
    const batch = await ChaosBatch.start(gateway, load, batchLines, "billed-paid")
    const strikes = new Strikes(ground, {
      random: randomFrom(seed + 1),
      among,
      log: (line) => log(`${since()}  ${line}, ${batch.done} requests of the batch done`)
    })
    let turn = 0
    await strikes.strikeWhile(async () => {
      if (++turn % 5 === 0) await counting.replace()
      await batch.isRunning()
      return performance.now() - start < forMs
    }, everyMs)
    await load.stop()
    log(`${since()}  ${load.entries.length} requests have ended`)
    const { wrong: wrongInBatch } = await batch.report()
    await untilIdle(ground)
    const look = async () => {
      const events = await eventsIn(gateway.nats)
      return { events, result: reconcile(calls(), events, requestOf) }
    }
    const { events, result } = await eventually(look, ({ result }) => result.wrong.length === 0, 20_000).catch(look)
    log(`${since()}  ${events.length} events are compared with ${result.calls} calls`)
    const { rows, spentUsd } = await Effect.runPromise(countedBooks(gateway.nats, events))
    const costUsd = events.reduce((sum, event) => sum + (event.costUsd ?? 0), 0)
    const ended = gateway.processes.filter((one) => one.hasExited && !strikes.stopped.has(one))
    return {
      ...result,
      outcomes: load.tally,
      faults: { ...strikes.counts(faultNames), "kill -9 the process that counts": counting.kills },
      books: {
        events: { requests: events.length, costUsd },
        counters: {
          requests: rows.reduce((sum, { requests }) => sum + requests, 0),
          costUsd: rows.reduce((sum, { costUsd }) => sum + costUsd, 0)
        },
        spentUsd
      },
      wrong: [
        ...result.wrong,
        // that check also counts calls that were answered with an error, which are free
        ...wrongInBatch.filter((what) => !what.startsWith("paid twice")).map((what) => `batch: ${what}`),
        ...paidTwice(calls()),
        ...mispriced(events),
        ...miscounted(events, rows),
        ...(spentUsd === costUsd ? [] : [`the keys have spent $${spentUsd}, their events cost $${costUsd}`]),
        ...ended.map(({ log, name, pid }) => `${name} ${pid} exited by itself:\n${log.slice(-2_000)}`)
      ]
    }
  } finally {
    await counting.kill()
  }
}
