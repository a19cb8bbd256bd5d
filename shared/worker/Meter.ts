/**
 * Records one job's usage event. The event leaves right after the last frame of the answer, in the same write, and the job is
 * acknowledged when the event is stored: if the event is lost with its worker, JetStream redelivers the job.
 */
import type { ServedJob } from "../bus/worker/JobServer.ts"
import type { Workload } from "../contract/Operation.ts"
import type { Usage } from "../contract/Usage.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import type { UsageEvent } from "../usage/UsageEvent.ts"
import type { UsageLog } from "../usage/UsageLog.ts"

export interface Metering {
  readonly log: UsageLog["Service"]
  readonly workload: Workload
  readonly now: () => number
  /** The cost in US dollars of this usage of a model, if the endpoint has answered; `null` if unknown. */
  readonly cost: (model: string, usage: Usage | undefined, endpoint: Endpoint | undefined) => number | null
}

/** A model at a provider. */
export interface Endpoint {
  readonly name: string
  readonly model: string
}

/** For an answer whose provider reports no usage: its price may be per answer. */
const noTokens: Usage = { inputTokens: 0, outputTokens: 0 }

export class Meter {
  readonly #metering: Metering
  readonly #job: ServedJob
  #calls = 0
  #endpoint: Endpoint | undefined
  /** What the last call's provider had reported before its answer was cut off. */
  #partialUsage: Usage | undefined
  #isWritten = false

  constructor(metering: Metering, job: ServedJob) {
    this.#metering = metering
    this.#job = job
  }

  called(endpoint: Endpoint): void {
    this.#calls++
    this.#endpoint = endpoint
    this.#partialUsage = undefined
  }

  /** The usage that the provider had reported before its answer was cut off. */
  cut(usage: Usage): void {
    this.#partialUsage = usage
  }

  ended(usage: Usage | undefined): void {
    this.#write("success", null, usage)
  }

  failed(error: string): void {
    if (this.#calls > 0) this.#write("failure", error, this.#partialUsage)
  }

  cancelled(): void {
    if (this.#calls > 0) this.#write("cancelled", null, this.#partialUsage)
  }

  /** A previous worker lost the job. If that worker has stored its own event, that one counts. */
  lost(): void {
    this.#write("failure", "WorkerLost", undefined)
  }

  #write(outcome: UsageEvent["outcome"], error: string | null, usage: Usage | undefined): void {
    if (this.#isWritten) return
    this.#isWritten = true
    const { cost, log, now, workload } = this.#metering
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
        usage: usage ?? null,
        costUsd: cost(pulled.model, outcome === "success" ? usage ?? noTokens : usage, this.#endpoint),
        outcome,
        error,
        durationMs: Math.round(elapsed() - takenAt),
        firstByteMs: reply.startedAt === undefined ? null : Math.round(reply.startedAt - takenAt),
        attempts: this.#calls,
        ...(traceId === undefined ? {} : { traceId })
      },
      this.#job.hold()
    )
  }
}
