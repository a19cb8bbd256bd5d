/** How a worker's frames reach the ingresses that wait for them; each version of the protocol has its own way. */
import type { Claim, Frame } from "../protocol/Frame.ts"

/** One attempt at a job, as its frames name it. */
export interface FrameSource {
  readonly job: string
  readonly attempt: number
  readonly ingress: string
  /** The subject for its frames, and the one for ingress's answers. Used by version 2. */
  readonly subject: string
  readonly control: string
}

export interface FrameChannel {
  /** Tells the ingress that this worker has the job and starts. Not urgent, but never behind a frame about the job. */
  readonly claim: (ingress: string, claim: Claim) => void
  readonly send: (source: FrameSource, frame: Frame, payload?: Uint8Array) => void
}
