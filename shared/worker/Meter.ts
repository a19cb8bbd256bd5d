/**
 * Records one job's usage event. The event leaves right after the last frame of the answer, in the same write, and the job is
 * acknowledged when the event is stored: if the event is lost with its worker, JetStream redelivers the job.
 */
import type { ServedJob } from "../bus/worker/JobServer.ts"
import type { Workload } from "../contract/Operation.ts"
import { operationNamed } from "../contract/operations/operations.ts"
import type { Usage } from "../contract/Usage.ts"
import * as UsageSum from "../contract/UsageSum.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import type { Checked, Guardrail, UsageEvent } from "../usage/UsageEvent.ts"
import type { UsageLog } from "../usage/UsageLog.ts"

export interface Metering {
  readonly log: UsageLog["Service"]
  readonly workload: Workload
  readonly now: () => number
  /** The cost, in US dollars, of this usage of a model at this endpoint; `null` if unknown. */
  readonly cost: (model: string, usage: Usage | undefined, endpoint: Endpoint | undefined) => number | null
}

/** A model at a provider. */
export interface Endpoint {
  readonly name: string
  readonly model: string
}

/** The usage of an answer whose provider reports none: the price may be per answer. */
const noTokens: Usage = { inputTokens: 0, outputTokens: 0 }

export class Meter {
  readonly #metering: Metering
  readonly #job: ServedJob
  #calls = 0
  #repeatedCalls = 0
  #endpoint: Endpoint | undefined
  /** The usage that the last call's provider had reported before its answer was cut off. */
  #partialUsage: Usage | undefined
  /** The usage and the cost of the calls before the last one, as far as they are known. */
  #spent: Usage | undefined
  #spentUsd: number | null = null
  #guardrail: Guardrail | undefined
  #isWritten = false

  constructor(metering: Metering, job: ServedJob) {
    this.#metering = metering
    this.#job = job
  }

  /** A call is about to be made. `isRepeated`: the provider may bill the failed call before it. */
  called(endpoint: Endpoint, isRepeated = false): void {
    if (isRepeated) this.#repeatedCalls++
    if (this.#partialUsage !== undefined) {
      this.#spent = this.total(this.#partialUsage)
      this.#spentUsd = this.#costOf(this.#partialUsage)
    }
    this.#calls++
    this.#endpoint = endpoint
    this.#partialUsage = undefined
  }

  /** The usage of all calls. `usage`: of the last one. */
  total(usage: Usage | undefined): Usage | undefined {
    return usage === undefined ? this.#spent : UsageSum.sum(this.#spent, usage)
  }

  /** The usage that the provider had reported before its answer was cut off. */
  cut(usage: Usage): void {
    this.#partialUsage = usage
  }

  /** A guardrail has checked the request or the answer, or could not. */
  checked(direction: keyof Guardrail, outcome: Checked): void {
    this.#guardrail = { ...this.#guardrail, [direction]: outcome }
  }

  /** Whether a guardrail has blocked the request, which then has an event although it was never sent. */
  get #isBlocked(): boolean {
    return this.#guardrail?.request !== undefined && this.#guardrail.request !== "passed"
  }

  ended(usage: Usage | undefined): void {
    this.#write("success", null, usage)
  }

  failed(error: string): void {
    if (this.#calls > 0 || this.#isBlocked) this.#write("failure", error, this.#partialUsage)
  }

  cancelled(): void {
    if (this.#calls > 0) this.#write("cancelled", null, this.#partialUsage)
  }

  /** A previous worker was lost with the job. If that worker has stored its own event, that one counts. */
  lost(): void {
    this.#write("failure", "WorkerLost", undefined)
  }

  /** The cost of all calls; `null` if nothing is known. `usage`: of the last call. */
  #costOf(usage: Usage | undefined): number | null {
    if (operationNamed(this.#job.pulled.operation)?.isFree === true) return 0
    const { cost } = this.#metering
    const last = cost(this.#job.pulled.model, usage, this.#endpoint)
    return last === null ? this.#spentUsd : last + (this.#spentUsd ?? 0)
  }

  #write(outcome: UsageEvent["outcome"], error: string | null, usage: Usage | undefined): void {
    if (this.#isWritten) return
    this.#isWritten = true
    const { log, now, workload } = this.#metering
    const { now: elapsed, pulled, reply, takenAt } = this.#job
    const time = now()
    const traceId = TraceParent.traceIdOf(pulled.traceparent)
    log.write(
      workload,
      {
        id: pulled.id,
        time,
        key: pulled.tenant,
        operation: pulled.operation,
        model: pulled.model,
        provider: this.#endpoint?.name ?? null,
        providerModel: this.#endpoint?.model ?? null,
        usage: this.total(usage) ?? null,
        costUsd: this.#costOf(outcome === "success" ? usage ?? noTokens : usage),
        outcome,
        error,
        durationMs: Math.round(elapsed() - takenAt),
        firstByteMs: reply.startedAt === undefined ? null : Math.round(reply.startedAt - takenAt),
        attempts: this.#calls,
        ...(this.#repeatedCalls === 0 ? {} : { repeatedCalls: this.#repeatedCalls }),
        ...(this.#guardrail === undefined ? {} : { guardrail: this.#guardrail }),
        ...(traceId === undefined ? {} : { traceId })
      },
      this.#job.hold()
    )
  }
}
