/**
 * Every metric of the gateway, in one table: name, labels, meaning. README.md beside this file shows it; dashboards and
 * alerts are built on it. The unit is the end of the name: seconds, bytes, a ratio; `_total` is a count.
 *
 * Labels are bounded: models are those of the catalogue, and what goes beyond `maxSeries` folds into `other`.
 */
import { Context, Effect, Metric, type Scope } from "effect"

export interface Entry {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram"
  readonly labels: ReadonlyArray<string>
  readonly meaning: string
}

/** What is defined below, in its order. */
export const table: Array<Entry> = []

/** As README.md shows it. */
export const toMarkdown = (): string =>
  [
    "| metric | kind | labels | meaning |",
    "|---|---|---|---|",
    ...table.map(({ kind, labels, meaning, name }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${meaning} |`
    )
  ].join("\n")

/** How many combinations of its labels one metric may have in a process. */
const maxSeries = 2_000

/** Stands for whatever is too much. */
const other = "other"

type Values<Labels extends ReadonlyArray<string>> = { readonly [Index in keyof Labels]: string }

type Attributes = Readonly<Record<string, string>>

/** A metric with the labels that lead to it, if it has been made. */
interface Series<A> {
  metric: A | undefined
  readonly next: Map<string, Series<A>>
}

/**
 * A metric by its labels, each made once with its labels in it: it is asked for with every request, and `withAttributes`
 * would put its key together anew each time.
 */
const family = <Input, State, const Labels extends ReadonlyArray<string>>(
  entry: Entry & { readonly labels: Labels },
  make: (attributes: Attributes) => Metric.Metric<Input, State>
) => {
  table.push(entry)
  const first: Series<Metric.Metric<Input, State>> = { metric: undefined, next: new Map() }
  let count = 0
  const find = (values: ReadonlyArray<string>): Metric.Metric<Input, State> => {
    let series: typeof first | undefined = first
    for (const value of values) series = series?.next.get(value)
    return series?.metric ?? add(values)
  }
  const add = (values: ReadonlyArray<string>): Metric.Metric<Input, State> => {
    if (count >= maxSeries && values.some((value) => value !== other)) return find(values.map(() => other))
    let series = first
    for (const value of values) {
      const next = series.next.get(value) ?? { metric: undefined, next: new Map() }
      series.next.set(value, next)
      series = next
    }
    count++
    return series.metric = make(
      Object.fromEntries(entry.labels.map((label, index) => [label, values[index] ?? ""]))
    )
  }
  return (...values: Values<Labels>): Metric.Metric<Input, State> => find(values)
}

const counter = <const Labels extends ReadonlyArray<string>>(name: string, labels: Labels, description: string) =>
  family(
    { name, kind: "counter", labels, meaning: description },
    (attributes) => Metric.counter(name, { description, attributes, incremental: true })
  )

const gauge = <const Labels extends ReadonlyArray<string>>(name: string, labels: Labels, description: string) =>
  family(
    { name, kind: "gauge", labels, meaning: description },
    (attributes) => Metric.gauge(name, { description, attributes })
  )

const histogram = <const Labels extends ReadonlyArray<string>>(
  name: string,
  labels: Labels,
  description: string,
  boundaries: ReadonlyArray<number> = seconds
) =>
  family(
    { name, kind: "histogram", labels, meaning: description },
    (attributes) => Metric.histogram(name, { description, attributes, boundaries })
  )

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const perToken = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1]

const nowhere = Context.empty()

/** For the paths that are plain callbacks. */
export const update = <Input>(metric: Metric.Metric<Input, unknown>, input: Input): void =>
  metric.updateUnsafe(input, nowhere)

/** A gauge that is read whenever it is asked for, until the scope closes. */
export const observe = (
  metric: Metric.Gauge<number>,
  read: () => number
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => observeUnsafe(metric, read)),
    (forget) => Effect.sync(forget)
  ))

/** The same without a scope: returns how to end it. */
export const observeUnsafe = (metric: Metric.Gauge<number>, read: () => number): () => void => {
  const hooks = { get: () => ({ value: read() }), update: () => undefined, modify: () => undefined }
  const registration = Metric.registerUnsafe(metric, nowhere, hooks)
  return () => registration.remove()
}

// requests, as ingress sees them

export const requests = counter(
  "gateway_requests_total",
  ["operation", "model", "outcome"],
  "Requests that ingress has answered; outcome is success, the error's tag, or cancelled"
)
export const requestDuration = histogram(
  "gateway_request_duration_seconds",
  ["operation", "model"],
  "From a request's head to the last byte of its answer, queue included"
)
export const firstByte = histogram(
  "gateway_request_first_byte_seconds",
  ["operation", "model"],
  "From a request's head to the first byte of its answer, where a worker has given one"
)
export const inProgress = gauge("gateway_requests_in_progress", [], "Requests that ingress is answering")
export const keyRequests = counter(
  "gateway_key_requests_total",
  ["key", "outcome"],
  "Requests of an API key, by its id; outcome as above"
)

// queues, as ingress sees them

export const queueJobs = gauge(
  "gateway_queue_jobs",
  ["workload", "pool", "state"],
  "Jobs of this ingress: waiting for their turn here, unclaimed in the stream, or running at a worker"
)
export const queueTasks = gauge(
  "gateway_queue_tasks",
  ["workload", "pool", "state"],
  "Tasks in the queue, waiting for a worker or given to one: of the whole gateway, as each ingress reads it every 5 s"
)
export const queueWait = histogram(
  "gateway_queue_wait_seconds",
  ["workload", "pool"],
  "From a job's submission until a worker had it"
)
export const redispatches = counter(
  "gateway_queue_redispatches_total",
  ["workload", "pool"],
  "Jobs that were given to another worker because theirs was lost"
)
export const poisonJobs = counter(
  "gateway_queue_poison_jobs_total",
  ["workload", "pool"],
  "Jobs that were given up because two workers were lost over them one after the other"
)

// workers

export const workerSlots = gauge("gateway_worker_slots", ["workload", "pool"], "Jobs that this worker does at once")
export const workerJobs = gauge("gateway_worker_jobs", ["workload", "pool"], "Jobs that this worker has in hand")
export const jobs = counter(
  "gateway_jobs_total",
  ["operation", "outcome"],
  "Jobs that this worker has ended; outcome is Done, the error's tag, or Cancelled"
)

// providers, as workers see them

export const attempts = counter(
  "gateway_provider_attempts_total",
  ["provider", "outcome"],
  "Calls to a provider; outcome is success, the error's tag, or interrupted where nobody waited any more"
)
export const attemptDuration = histogram(
  "gateway_provider_attempt_duration_seconds",
  ["provider", "model"],
  "How long calls to a provider took, whatever came of them; model is its name there"
)
export const retries = counter(
  "gateway_provider_retries_total",
  ["provider"],
  "Calls that repeat a failed one to the same model at the same provider"
)
export const fallbacks = counter(
  "gateway_provider_fallbacks_total",
  ["provider"],
  "Calls that were made because another provider had failed the request"
)
export const timeToFirstToken = histogram(
  "gateway_provider_time_to_first_token_seconds",
  ["provider", "model"],
  "From a streaming call to the first bytes of its answer"
)
export const timePerOutputToken = histogram(
  "gateway_provider_time_per_output_token_seconds",
  ["provider", "model"],
  "Of a stream from its first bytes to its end, by the tokens after the first",
  perToken
)
export const breakerState = gauge(
  "gateway_provider_breaker_state",
  ["provider", "model"],
  "The circuit of a model at a provider, as this worker sees it: 0 closed, 1 half open, 2 open"
)
export const providerWait = histogram(
  "gateway_provider_wait_seconds",
  ["provider"],
  "How long calls waited for a provider's limits, where they had to"
)
export const tokens = counter(
  "gateway_tokens_total",
  ["provider", "model", "type"],
  "Tokens by type: input, output, cached and cache_write (parts of input), reasoning (part of output); model as clients name it"
)
export const keyTokens = counter(
  "gateway_key_tokens_total",
  ["key", "type"],
  "Input and output tokens of an API key, by its id"
)

export const cost = counter(
  "gateway_cost_usd_total",
  ["model"],
  "What requests have cost in US dollars, by the prices in the catalogue; model as clients name it"
)
export const keyCost = counter("gateway_key_cost_usd_total", ["key"], "The same by API key, by its id")
export const usageLost = counter(
  "gateway_usage_events_lost_total",
  [],
  "Usage events of this worker that were lost, because NATS did not take them for too long"
)
export const usageDelay = gauge(
  "gateway_usage_delay_seconds",
  [],
  "For how long the oldest usage event that this process has in hand could not be counted; budgets do not know of it"
)

// the bus

export const natsConnected = gauge(
  "gateway_nats_connected",
  ["account"],
  "1 while the connection to this account of NATS stands, else 0"
)
export const natsReconnects = counter(
  "gateway_nats_reconnects_total",
  ["account"],
  "Returns of a lost connection to NATS"
)
export const natsErrors = counter(
  "gateway_nats_errors_total",
  ["account"],
  "Errors that NATS reported on the connection"
)
export const jetStreamErrors = counter(
  "gateway_jetstream_errors_total",
  ["request"],
  "Requests that JetStream refused or did not answer: provision, confirm or submit"
)

// the process

export const eventLoopDelay = gauge(
  "gateway_event_loop_delay_seconds",
  [],
  "By how much timers came late in the last ten seconds, at the 99th percentile"
)
export const eventLoopUtilization = gauge(
  "gateway_event_loop_utilization_ratio",
  [],
  "How much of its time the event loop has been busy since the last look, 0 to 1"
)
export const heapUsed = gauge("gateway_heap_used_bytes", [], "JavaScript heap in use")
export const residentMemory = gauge("gateway_resident_memory_bytes", [], "Memory of the process")
export const memoryLimit = gauge(
  "gateway_memory_limit_bytes",
  [],
  "The most memory that the process may have: its container's limit, or what the machine has"
)
export const exportsFailed = counter(
  "gateway_telemetry_exports_failed_total",
  ["signal"],
  "Tries to deliver traces, metrics or logs to the collector that failed"
)
