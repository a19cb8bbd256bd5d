/**
 * Defines all metrics: name, labels and meaning. README.md beside this file has the same table. Dashboards and alerts depend on the
 * names. A name ends with its unit (seconds, bytes, ratio) or, for counters, with `_total`.
 *
 * The number of series is limited: models are those of the catalogue, and series beyond `maxSeries` are merged into `other`.
 *
 * Metrics are of the process: services that a test starts in one process share them.
 */
import { Context, Effect, Metric, type Scope } from "effect"

export interface Entry {
  readonly name: string
  readonly kind: "counter" | "gauge" | "histogram"
  readonly labels: ReadonlyArray<string>
  readonly meaning: string
}

/** The metrics below, in their order. */
export const table: Array<Entry> = []

/** The table in README.md. */
export const toMarkdown = (): string =>
  [
    "| metric | kind | labels | meaning |",
    "|---|---|---|---|",
    ...table.map(({ kind, labels, meaning, name }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${meaning} |`
    )
  ].join("\n")

/** Maximum label combinations of a metric per process. */
const maxSeries = 2_000

const other = "other"

type Values<Labels extends ReadonlyArray<string>> = { readonly [Index in keyof Labels]: string }

type Attributes = Readonly<Record<string, string>>

/** A node of a trie of label values. */
interface Series<A> {
  metric: A | undefined
  readonly next: Map<string, Series<A>>
}

/** Metrics by label values, each created once: with `withAttributes`, every request would build the key of its metric again. */
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

const counter = <const Labels extends ReadonlyArray<string>>(name: string, labels: Labels) => (meaning: string) =>
  family(
    { name, kind: "counter", labels, meaning },
    (attributes) => Metric.counter(name, { description: meaning, attributes, incremental: true })
  )

const gauge = <const Labels extends ReadonlyArray<string>>(name: string, labels: Labels) => (meaning: string) =>
  family(
    { name, kind: "gauge", labels, meaning },
    (attributes) => Metric.gauge(name, { description: meaning, attributes })
  )

const histogram =
  <const Labels extends ReadonlyArray<string>>(name: string, labels: Labels, boundaries = seconds) =>
  (meaning: string) =>
    family(
      { name, kind: "histogram", labels, meaning },
      (attributes) => Metric.histogram(name, { description: meaning, attributes, boundaries })
    )

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const perToken = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1]

const nowhere = Context.empty()

/** Updates a metric from a plain callback. */
export const update = <Input>(metric: Metric.Metric<Input, unknown>, input: Input): void =>
  metric.updateUnsafe(input, nowhere)

/** Reads a gauge's value at each scrape or export, until the scope closes. */
export const observe = (
  metric: Metric.Gauge<number>,
  read: () => number
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => observeUnsafe(metric, read)),
    (forget) => Effect.sync(forget)
  ))

/** Like `observe`, but without a scope. Returns a function that ends it. */
export const observeUnsafe = (metric: Metric.Gauge<number>, read: () => number): () => void => {
  const hooks = { get: () => ({ value: read() }), update: () => undefined, modify: () => undefined }
  const registration = Metric.registerUnsafe(metric, nowhere, hooks)
  return () => registration.remove()
}

/** Returns a function that sets a list of gauges. Gauges of the previous list that are not in the new one are removed. */
export const replaceable: Effect.Effect<
  (series: ReadonlyArray<readonly [gauge: Metric.Gauge<number>, value: number]>) => void,
  never,
  Scope.Scope
> = Effect.map(
  Effect.acquireRelease(
    Effect.sync((): { forget: ReadonlyArray<() => void> } => ({ forget: [] })),
    (reported) => Effect.sync(() => reported.forget.forEach((forget) => forget()))
  ),
  (reported) => (series) => {
    for (const forget of reported.forget) forget()
    reported.forget = series.map(([gauge, value]) => observeUnsafe(gauge, () => value))
  }
)

// requests at ingress

export const requests = counter("gateway_requests_total", ["operation", "model", "outcome"])(
  "Requests answered by ingress; outcome is success, the error's tag, or cancelled"
)
export const requestDuration = histogram("gateway_request_duration_seconds", ["operation", "model"])(
  "Time from a request's head to the last byte of its answer, including the queue"
)
export const firstByte = histogram("gateway_request_first_byte_seconds", ["operation", "model"])(
  "Time from a request's head to the first byte of a worker's answer"
)
export const inProgress = gauge("gateway_requests_in_progress", [])("Requests in progress at ingress")
export const keyRequests = counter("gateway_key_requests_total", ["key", "outcome"])(
  "Requests by API key id; outcome as above"
)

// queues at ingress

export const queueJobs = gauge("gateway_queue_jobs", ["workload", "pool", "state"])(
  "Jobs of this ingress: waiting here, unclaimed in the stream, or running at a worker"
)
export const queueTasks = gauge("gateway_queue_tasks", ["workload", "pool", "state"])(
  "Queued and running tasks of the whole gateway, read by each ingress every 5 s"
)
export const oldestTask = gauge("gateway_queue_oldest_task_seconds", ["workload", "pool"])(
  "Age of the oldest task that waits or runs, read by the console every 15 s; 0 without tasks"
)
export const queueWait = histogram("gateway_queue_wait_seconds", ["workload", "pool"])(
  "Time from a job's submission to its claim"
)
export const shadows = counter("gateway_shadow_requests_total", ["model", "outcome"])(
  "Copies of requests that were sent to this model as shadow traffic; skipped: too many were open"
)
export const redispatches = counter("gateway_queue_redispatches_total", ["workload", "pool"])(
  "Jobs dispatched again because their worker was lost"
)
export const poisonJobs = counter("gateway_queue_poison_jobs_total", ["workload", "pool"])(
  "Jobs failed because two workers in a row were lost while running them"
)
export const consumersRecreated = counter("gateway_queue_consumers_recreated_total", ["workload", "pool"])(
  "Consumers of job queues that the console recreated because they could not deliver"
)

export const webhookAttempts = counter("gateway_webhook_attempts_total", ["outcome"])(
  "Attempts to deliver events to receivers of webhooks, by outcome: accepted, refused or final"
)

// workers

export const workerSlots = gauge("gateway_worker_slots", ["workload", "pool"])(
  "Concurrent jobs that this worker accepts now"
)
export const batchLines = counter("gateway_batch_lines_total", ["outcome"])(
  "Lines of batches ended by this worker; outcome is completed or failed"
)
export const batches = counter("gateway_batches_total", ["status"])(
  "Batches ended by this holder; status is completed, failed, expired or cancelled"
)
export const workerJobs = gauge("gateway_worker_jobs", ["workload", "pool"])("Jobs that this worker runs")
export const jobs = counter("gateway_jobs_total", ["operation", "outcome"])(
  "Jobs ended by this worker; outcome is success, the error's tag, or cancelled"
)

// providers at workers

export const attempts = counter("gateway_provider_attempts_total", ["provider", "outcome"])(
  "Calls to a provider; outcome is success, the error's tag, or cancelled"
)
export const attemptDuration = histogram("gateway_provider_attempt_duration_seconds", ["provider", "model"])(
  "Duration of calls to a provider, successful or not; model is its name there"
)
export const retries = counter("gateway_provider_retries_total", ["provider"])(
  "Calls that repeat a failed one to the same model at the same provider"
)
export const fallbacks = counter("gateway_provider_fallbacks_total", ["provider"])(
  "Calls made because another provider failed the request"
)
export const repeatedCalls = counter("gateway_provider_repeated_calls_total", ["provider"])(
  "Calls that were cut or timed out after they were sent, and then repeated anywhere, so that both may be billed"
)
export const skippedChunks = counter("gateway_provider_skipped_chunks_total", ["provider"])(
  "Damaged pieces of text that were left out of a stream"
)
export const timeToFirstToken = histogram("gateway_provider_time_to_first_token_seconds", ["provider", "model"])(
  "Time from a streaming call to the first content of its answer"
)
export const timePerOutputToken = histogram(
  "gateway_provider_time_per_output_token_seconds",
  ["provider", "model"],
  perToken
)(
  "Time from a stream's first bytes to its end, divided by the tokens after the first"
)
export const breakerState = gauge("gateway_provider_breaker_state", ["provider", "model"])(
  "The circuit of a model at a provider, as this worker sees it: 0 closed, 1 half open, 2 open"
)
export const delayed = gauge("gateway_provider_delayed", ["provider", "model"])(
  "Whether this worker delays the calls of all keys to a model at a provider, because it answers 429: 1 or 0"
)
export const delayedKeys = gauge("gateway_provider_delayed_keys", ["provider", "model"])(
  "The keys whose calls to a model at a provider this worker delays, because they were answered with 429"
)
export const delayedRequests = gauge("gateway_provider_delayed_requests", ["provider", "model"])(
  "The requests that wait at this worker because a model at a provider answers 429"
)
export const quotaLeft = gauge("gateway_provider_quota_left", ["provider", "model", "limit"])(
  "What a provider's latest 429 said is left of the account's limits, in requests or tokens; -1 if it did not say"
)
export const providerWait = histogram("gateway_provider_wait_seconds", ["provider"])(
  "Time that calls waited for a provider's limits, if they had to"
)
export const tokens = counter("gateway_tokens_total", ["provider", "model", "type"])(
  "Tokens by type: input, output, cached and cache_write (parts of input), reasoning (part of output), estimated " +
    "(part of both, if the provider reported none); model as clients name it"
)
export const keyTokens = counter("gateway_key_tokens_total", ["key", "type"])("Input and output tokens by API key id")

export const cost = counter("gateway_cost_usd_total", ["model"])(
  "Cost of requests in US dollars, by the catalogue's prices; model as clients name it"
)
export const keyCost = counter("gateway_key_cost_usd_total", ["key"])("The same by API key id")
export const usageLost = counter("gateway_usage_events_lost_total", [])(
  "Usage events of this worker lost because NATS did not accept them for too long"
)
export const usageDelay = gauge("gateway_usage_delay_seconds", [])(
  "Age of the oldest usage event that this process could not count yet; budgets do not include it"
)

// the guardrail at workers

export const guardrailChecks = counter("gateway_guardrail_checks_total", ["model", "direction", "outcome"])(
  "Requests and answers of models with a guardrail; outcome is passed, refused or unchecked"
)
export const guardrailCalls = counter("gateway_guardrail_calls_total", ["outcome"])(
  "Calls to the guardrail; outcome is allow, refuse, or why it gave no verdict: timeout, unreachable, status, malformed or secret"
)
export const guardrailDuration = histogram("gateway_guardrail_call_duration_seconds", [])(
  "Duration of calls to the guardrail, with the wait for their turn"
)

// the bus

export const natsConnected = gauge("gateway_nats_connected", ["account"])(
  "1 while connected to this account of NATS, otherwise 0"
)
export const catalogueRefused = gauge("gateway_catalogue_refused", [])(
  "1 while the process does not use the catalogue in its file, because it, or another process, cannot use it"
)
export const natsReconnects = counter("gateway_nats_reconnects_total", ["account"])("Reconnects to NATS")
export const natsErrors = counter("gateway_nats_errors_total", ["account"])("Errors reported by NATS on the connection")
export const jetStreamErrors = counter("gateway_jetstream_errors_total", ["request"])(
  "Requests that JetStream rejected or did not answer: provision, confirm, submit or limits"
)

// the process

export const eventLoopDelay = gauge("gateway_event_loop_delay_seconds", [])(
  "Delay of timers in the last ten seconds, 99th percentile"
)
export const eventLoopUtilization = gauge("gateway_event_loop_utilization_ratio", [])(
  "Busy share of the event loop's time since the last read, 0 to 1"
)
export const heapUsed = gauge("gateway_heap_used_bytes", [])("JavaScript heap in use")
export const residentMemory = gauge("gateway_resident_memory_bytes", [])("Memory of the process")
export const memoryLimit = gauge("gateway_memory_limit_bytes", [])(
  "The process's memory limit: the container's, or the machine's memory"
)
export const exportsFailed = counter("gateway_telemetry_exports_failed_total", ["signal"])(
  "Failed deliveries of traces, metrics or logs to the collector"
)
