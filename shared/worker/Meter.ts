/**
 * Follows one job on the way to its usage event. The event leaves right behind the last frame of the answer, in the same
 * write, and the job is acknowledged when it is stored: a job whose event was lost with its worker comes to another.
 */
import type { ServedJob } from "../bus/worker/JobServer.ts"
import type { Workload } from "../contract/Operation.ts"
import type { Usage } from "../contract/Usage.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import type { UsageEvent } from "../usage/UsageEvent.ts"
import type { UsageLog } from "../usage/UsageLog.ts"

/** What jobs are metered with. */
export interface Metering {
  readonly log: UsageLog["Service"]
  readonly workload: Workload
  readonly now: () => number
  /** What it costs to consume this, in US dollars; `null` where that is not known. */
  readonly cost: (model: string, usage: Usage | undefined) => number | null
}

/** How a job ended. */
interface Ending {
  readonly outcome: UsageEvent["outcome"]
  readonly error: string | null
  readonly usage: Usage | undefined
}

/** Of an answer whose provider does not count; it may be paid for as such. */
const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

export class Meter {
  readonly #metering: Metering
  readonly #job: ServedJob
  #calls = 0
  #provider: string | null = null
  #providerModel: string | null = null
  /** Of the last call, where that is all that is known of it. */
  #cut: Usage | undefined
  #isWritten = false

  constructor(metering: Metering, job: ServedJob) {
    this.#metering = metering
    this.#job = job
  }

  called(endpoint: { readonly name: string; readonly model: string }): void {
    this.#calls++
    this.#provider = endpoint.name
    this.#providerModel = endpoint.model
    this.#cut = undefined
  }

  /** What its provider had said until then of the consumption of an answer that was not brought to its end. */
  cut(usage: Usage): void {
    this.#cut = usage
  }

  ended(usage: Usage | undefined): void {
    this.#write({ outcome: "success", error: null, usage })
  }

  failed(error: string): void {
    if (this.#calls > 0) this.#write({ outcome: "failure", error, usage: this.#cut })
  }

  cancelled(): void {
    if (this.#calls > 0) this.#write({ outcome: "cancelled", error: null, usage: this.#cut })
  }

  /** By a worker before this one. Where that one could write its event, this one is not counted beside it. */
  lost(): void {
    this.#write({ outcome: "failure", error: "WorkerLost", usage: undefined })
  }

  #write({ error, outcome, usage }: Ending): void {
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
        provider: this.#provider,
        providerModel: this.#providerModel,
        usage: usage ?? null,
        costUsd: cost(pulled.model, outcome === "success" ? usage ?? nothing : usage),
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
