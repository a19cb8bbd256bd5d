/**
 * Sends a share of a model's requests to a second model as well, whose answers are discarded. These copies wait behind all other
 * requests, in class batch, and have a tenant of their own: keys neither pay nor wait for them, and workers store nothing of their
 * answers.
 */
import type { Random } from "effect"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobHandle, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import type { ModelSnapshot, OfferedModel } from "../../../shared/catalogue/Models.ts"
import { shadowTenant } from "../../../shared/contract/Owner.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

/** Maximum copies that wait or run in this process, and maximum bytes of their bodies. Further copies are skipped. */
const maxOpen = 100
const maxBytes = 16 * 1024 * 1024

export class ShadowTraffic {
  readonly #jobs: JobClient["Service"]
  readonly #random: typeof Random.Random.Service
  #open = 0
  #bytes = 0

  constructor(jobs: JobClient["Service"], random: typeof Random.Random.Service) {
    this.#jobs = jobs
    this.#random = random
  }

  /** Submits a copy of the request if its turn has come. */
  copy(request: JobRequest, shadow: NonNullable<OfferedModel["shadow"]>, { models }: ModelSnapshot): void {
    const target = models.get(shadow.model)
    if (target === undefined || this.#random.nextDoubleUnsafe() >= shadow.share) return
    const { length } = request.body
    const count = (outcome: string) => Metrics.update(Metrics.shadows(shadow.model, outcome), 1)
    if (this.#open >= maxOpen || this.#bytes + length > maxBytes) return count("skipped")
    this.#open++
    this.#bytes += length
    const end = (outcome: string) => {
      this.#open--
      this.#bytes -= length
      count(outcome)
    }
    const { pool, workload } = target
    const batch = {
      tenant: shadowTenant,
      weight: 1,
      priority: "batch",
      traceparent: undefined,
      parent: undefined,
      reservedBytes: 0
    } as const
    const answer = new DiscardedAnswer(end)
    // the body names the other model
    const asked = { workload, pool, model: shadow.model, isPlain: false }
    answer.job = this.#jobs.submit({ ...request, ...batch, ...asked }, answer)
  }
}

/** Takes everything immediately, so that the worker never waits. */
class DiscardedAnswer implements AnswerListener {
  readonly #end: (outcome: "success" | "failure") => void
  job: JobHandle | undefined

  constructor(end: (outcome: "success" | "failure") => void) {
    this.#end = end
  }

  onClaim(): void {}

  onWait(): void {}

  onStart(): void {}

  onRestart(): void {}

  onChunk({ length }: Uint8Array): void {
    this.job?.taken(length)
  }

  onEnd(): void {
    this.#end("success")
  }

  onError(): void {
    this.#end("failure")
  }
}
