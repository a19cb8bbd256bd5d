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
