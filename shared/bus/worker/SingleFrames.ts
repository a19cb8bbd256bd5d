/**
 * Sends a worker's frames as single messages (protocol version 2). Claims are batched: each ingress gets all claims since the last
 * send in one message.
 */
import type { Workload } from "../../contract/Operation.ts"
import { type Claim, encodeFrame, type Frame, payloadOf, replyOf } from "../protocol/Frame.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"
import type { FrameChannel, FrameSource } from "./FrameChannel.ts"

export class SingleFrames implements FrameChannel {
  readonly #outbox: Outbox
  readonly #workload: Workload
  readonly #worker: string
  #waiting = new Map<string, Array<Claim>>()

  constructor(outbox: Outbox, workload: Workload, worker: string) {
    this.#outbox = outbox
    this.#workload = workload
    this.#worker = worker
  }

  claim(ingress: string, claim: Claim): void {
    if (this.#waiting.size === 0) this.#outbox.linger(() => this.#sendClaims())
    const claims = this.#waiting.get(ingress)
    if (claims === undefined) this.#waiting.set(ingress, [claim])
    else claims.push(claim)
  }

  /** Every frame carries the control subject, so that ingress can answer it. Ingress does not learn of waits for providers. */
  send({ control, subject }: FrameSource, frame: Frame, payload?: Uint8Array): void {
    if (frame.type === "waits" || frame.type === "works") return
    // the claim to a job must precede its frames
    this.#sendClaims()
    const bytes = frame.type === "error" ? payloadOf(frame) : payload
    this.#outbox.publish(subject, bytes, encodeFrame(frame), replyOf(control, frame))
  }

  #sendClaims(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [ingress, claims] of waiting) {
      const frame: Frame = { type: "claims", claims }
      this.#outbox.publish(
        Subjects.aboutWorkerSubject(this.#workload, ingress, this.#worker),
        payloadOf(frame),
        encodeFrame(frame),
        Subjects.linkSubject(this.#workload, this.#worker, ingress)
      )
    }
  }
}
