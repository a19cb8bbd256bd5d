/** Batches this worker's claims: each ingress gets those made since the last send in one message. */
import type { Workload } from "../../contract/Operation.ts"
import { type Claim, encodeFrame, type Frame, payloadOf } from "../protocol/Frame.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"

export class Claims {
  readonly #outbox: Outbox
  readonly #workload: Workload
  readonly #worker: string
  #waiting = new Map<string, Array<Claim>>()

  constructor(outbox: Outbox, workload: Workload, worker: string) {
    this.#outbox = outbox
    this.#workload = workload
    this.#worker = worker
  }

  add(ingress: string, claim: Claim): void {
    if (this.#waiting.size === 0) this.#outbox.linger(() => this.send())
    const claims = this.#waiting.get(ingress)
    if (claims === undefined) this.#waiting.set(ingress, [claim])
    else claims.push(claim)
  }

  /** Publishes the gathered claims. Runs before any frame: the claim to a job must precede its frames. */
  send(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [ingress, claims] of waiting) {
      const frame: Frame = { type: "claims", claims }
      this.#outbox.publish(
        Subjects.aboutWorkerSubject(this.#workload, ingress, this.#worker),
        payloadOf(frame),
        encodeFrame(frame),
        Subjects.ingressGoneSubject(this.#workload, this.#worker, ingress)
      )
    }
  }
}
