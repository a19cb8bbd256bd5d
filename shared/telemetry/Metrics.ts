/** Every metric of the gateway, in one table: name, kind, unit, labels, meaning. */
import { Metric } from "effect"

/** A metric by its labels, each made once: labels are few and this is asked for with every request. */
const labelled = <Input, State, Labels extends ReadonlyArray<string>>(
  metric: Metric.Metric<Input, State>,
  attributes: (...labels: Labels) => Record<string, string>
) => {
  const made = new Map<string, Metric.Metric<Input, State>>()
  return (...labels: Labels): Metric.Metric<Input, State> => {
    const key = labels.join("\0")
    let found = made.get(key)
    if (found === undefined) {
      found = Metric.withAttributes(metric, attributes(...labels))
      made.set(key, found)
    }
    return found
  }
}

/** Requests answered by ingress. Labels: `operation`, `outcome` (`success`, the error's tag, or `cancelled`). */
const requestsTotal = Metric.counter("gateway_requests_total", {
  description: "Requests answered by ingress",
  incremental: true
})
export const requests = labelled(requestsTotal, (operation: string, outcome: string) => ({ operation, outcome }))

/** Jobs that a worker has finished. Labels: `outcome` (`Done` or the error's tag). */
const jobsTotal = Metric.counter("gateway_jobs_total", {
  description: "Jobs finished by this worker",
  incremental: true
})
export const jobs = labelled(jobsTotal, (outcome: string) => ({ outcome }))

/**
 * Calls to providers by this worker, retries among them. Labels: `provider`, `outcome` (`success`, the error's tag, or
 * `interrupted` where nobody waited for it any more).
 */
const attemptsTotal = Metric.counter("gateway_provider_attempts_total", {
  description: "Calls to providers by this worker, retries among them",
  incremental: true
})
export const attempts = labelled(attemptsTotal, (provider: string, outcome: string) => ({ provider, outcome }))

/** Calls that repeat one to the same model at the same provider, for the same request. Label: `provider`. */
const retriesTotal = Metric.counter("gateway_provider_retries_total", {
  description: "Calls by this worker that repeat a failed one to the same provider",
  incremental: true
})
export const retries = labelled(retriesTotal, (provider: string) => ({ provider }))

/** A circuit as this worker sees it: 0 closed, 1 half open, 2 open. Labels: `provider`, `model` (its name there). */
const breakerStates = Metric.gauge("gateway_provider_breaker_state", {
  description: "The circuit of a model at a provider, as this worker sees it: 0 closed, 1 half open, 2 open"
})
export const breakerState = labelled(breakerStates, (provider: string, model: string) => ({ provider, model }))

/** How long calls waited for a provider's limits, in milliseconds; those that need not wait are not counted. Label: `provider`. */
const providerWaits = Metric.histogram("gateway_provider_wait_milliseconds", {
  description: "How long calls waited for a provider's limits, in milliseconds, where they had to",
  boundaries: Metric.boundariesFromIterable([1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000])
})
export const providerWait = labelled(providerWaits, (provider: string) => ({ provider }))

/** Usage events of this worker that there was no room to keep while NATS did not take them. */
export const usageLost = Metric.counter("gateway_usage_events_lost_total", {
  description: "Usage events of this worker that were lost, because NATS did not take them for too long",
  incremental: true
})
