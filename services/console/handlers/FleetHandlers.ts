/** Handlers of `/api/models` and `/api/fleet`. */
import { Clock, DateTime, Effect, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ProcessState } from "../../../shared/bus/provision/Presence.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { queueState } from "../../../shared/bus/provision/QueueState.ts"
import { Catalogue } from "../../../shared/catalogue/Catalogue.ts"
import { isIdempotent, type Provider } from "../../../shared/catalogue/Provider.ts"
import { isOff, poolsOf } from "../../../shared/catalogue/Model.ts"
import { byImportance } from "../../../shared/provider/health/Delays.ts"
import { ConsoleApi } from "../api/Api.ts"
import type { Circuits, DelayView, ProcessView, ProviderView, QueueView } from "../api/Fleet.ts"
import { orUnavailable } from "../access/Availability.ts"
import { handleAll } from "../access/Narrowed.ts"
import { Fleet, type KnownProcess } from "./Fleet.ts"

/** The answering workers of a pool. */
const workersOf = (processes: ReadonlyArray<ProcessState>, workload: string, pool: string) =>
  processes.filter(({ work }) => work?.workload === workload && work.pool === pool)

const sum = <A>(all: ReadonlyArray<A>, of: (one: A) => number): number => all.reduce((total, one) => total + of(one), 0)

const measures = (processes: ReadonlyArray<ProcessState>, name: string) =>
  processes.flatMap((process) => process.measures.filter((measure) => measure.name === name))

const circuitsOf = (processes: ReadonlyArray<ProcessState>, provider: string, model: string): Circuits | null => {
  const levels = measures(processes, "gateway_provider_breaker_state")
    .filter(({ labels }) => labels["provider"] === provider && labels["model"] === model)
    .map(({ value }) => value)
  const count = (level: number) => levels.filter((value) => value === level).length
  return levels.length === 0 ? null : { closed: count(0), halfOpen: count(1), open: count(2) }
}

/** The delays of a target, those of several workers together. */
const delaysOf = (
  processes: ReadonlyArray<ProcessState>,
  provider: string,
  model: string
): ReadonlyArray<DelayView> => {
  const own = processes.flatMap(({ delays = [] }) =>
    delays.filter((delay) => delay.provider === provider && delay.model === model)
  )
  const views = [...Map.groupBy(own, ({ cause, owner }) => `${cause} ${owner}`).values()].map((all): DelayView => {
    const [{ cause, owner, quota }] = all as [typeof own[number]]
    return {
      cause,
      owner,
      forMs: Math.max(...all.map(({ forMs }) => forMs)),
      perMinute: all.every(({ perMinute }) => perMinute === null) ? null : sum(all, ({ perMinute }) => perMinute ?? 0),
      waiting: sum(all, ({ waiting }) => waiting),
      workers: all.length,
      requestsLeft: quota?.requestsLeft ?? null,
      tokensLeft: quota?.tokensLeft ?? null
    }
  })
  return views.toSorted(byImportance)
}

const callsOf = (processes: ReadonlyArray<ProcessState>, provider: string): ProviderView["calls"] => {
  const calls: Record<string, number> = {}
  for (const { labels, value } of measures(processes, "gateway_provider_attempts_total")) {
    if (labels["provider"] !== provider) continue
    const outcome = labels["outcome"] ?? "unknown"
    calls[outcome] = (calls[outcome] ?? 0) + value
  }
  return calls
}

const providerView = (name: string, provider: Provider, processes: ReadonlyArray<ProcessState>): ProviderView => ({
  name,
  protocol: provider.protocol,
  baseUrl: provider.baseUrl ?? null,
  hasApiKey: provider.apiKey !== undefined,
  isIdempotent: isIdempotent(provider),
  limits: { ...provider.limits },
  calls: callsOf(processes, name)
})

const processView = ({ isSilent, queues = [], startedAt, work, ...process }: KnownProcess): ProcessView => ({
  ...Struct.pick(process, ["id", "service", "host", "pid"]),
  startedAt: DateTime.makeUnsafe(startedAt),
  state: isSilent ? "silent" : process.state,
  pool: work?.pool ?? null,
  slots: work?.slots ?? null,
  inFlight: work?.inFlight ?? sum(queues, ({ running }) => running)
})

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "fleet",
  Effect.fn(function*(handlers) {
    const nats = yield* Nats
    const fleet = yield* Fleet
    const catalogue = yield* Catalogue

    const queueView = Effect.fnUntraced(function*(
      { pool, workload }: ReturnType<typeof poolsOf>[number],
      processes: ReadonlyArray<ProcessState>,
      now: number
    ) {
      const state = yield* queueState(workload, pool)
      const workers = workersOf(processes, workload, pool)
      const atIngress = processes.flatMap(({ queues = [] }) =>
        queues.filter((queue) => queue.workload === workload && queue.pool === pool)
      )
      const view: QueueView = {
        workload,
        pool,
        waiting: sum(atIngress, ({ waiting }) => waiting),
        pending: state?.pending ?? 0,
        ackPending: state?.ackPending ?? 0,
        redelivered: state?.redelivered ?? 0,
        oldestMs: state === null || state.oldestAt === null ? null : Math.max(0, now - state.oldestAt),
        slots: sum(workers, ({ work }) => work?.slots ?? 0),
        inFlight: sum(workers, ({ work }) => work?.inFlight ?? 0),
        workers: workers.filter(({ state }) => state === "ready").length
      }
      return view
    })

    return handleAll("fleet", handlers, {
      catalogue: Effect.fnUntraced(function*() {
        const processes = (yield* orUnavailable(fleet.list)).filter(({ isSilent }) => !isSilent)
        const { models, providers } = catalogue.current()
        return {
          models: [...models].map(([name, listed]) => ({
            name,
            workload: listed.workload,
            pool: listed.pool ?? "default",
            targets: listed.targets.map((target) => ({
              provider: target.provider,
              model: target.model ?? name,
              weight: target.weight ?? 1,
              priority: target.priority ?? 0,
              isOff: isOff(providers.get(target.provider), listed, target),
              circuits: circuitsOf(processes, target.provider, target.model ?? name),
              delays: delaysOf(processes, target.provider, target.model ?? name)
            })),
            workers: workersOf(processes, listed.workload, listed.pool ?? "default").filter(({ state }) =>
              state === "ready"
            ).length
          })),
          providers: [...providers].map(([name, provider]) => providerView(name, provider, processes))
        }
      }),
      live: Effect.fnUntraced(function*() {
        const seen = yield* orUnavailable(fleet.list)
        const processes = seen.filter(({ isSilent }) => !isSilent)
        const now = yield* Clock.currentTimeMillis
        const queues = yield* orUnavailable(
          Effect.forEach(poolsOf(catalogue.current()), (pool) => queueView(pool, processes, now), {
            concurrency: "unbounded"
          }).pipe(Effect.provideService(Nats, nats))
        )
        return {
          at: DateTime.makeUnsafe(now),
          queues,
          processes: seen.map(processView).toSorted((a, b) =>
            a.service.localeCompare(b.service) || a.id.localeCompare(b.id)
          )
        }
      })
    })
  })
)
