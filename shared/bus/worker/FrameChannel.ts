/** How a worker sends frames to ingresses. Each protocol version has its own implementation. */
import type { Claim, Frame } from "../protocol/Frame.ts"

/** One attempt at a job, as its frames name it. */
export interface FrameSource {
  readonly job: string
  readonly attempt: number
  readonly ingress: string
  /** The subject for the frames, and the subject for ingress's controls. Only version 2 uses them. */
  readonly subject: string
  readonly control: string
}

export interface FrameChannel {
  /** Tells the ingress that this worker has the job and starts. May be delayed, but always precedes the job's frames. */
  readonly claim: (ingress: string, claim: Claim) => void
  readonly send: (source: FrameSource, frame: Frame, payload?: Uint8Array) => void
}
