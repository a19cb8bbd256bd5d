/** What ingress knows about published jobs and about their queues in JetStream. Only `Publications` changes it. */
import type { Version } from "../protocol/Subjects.ts"

/** The latest publication of a job. Times are monotonic, in milliseconds. */
export class Publication {
  /** Its number in its pool: the stream delivers publications in this order. */
  number = 0
  at = 0
  /** Since when a worker has probably had it, or later publications have been claimed. */
  overtakenAt: number | undefined
  /** Since when not all workers read its version of the protocol. */
  unreadableAt: number | undefined
  /** The stream sequence of the message, once JetStream has confirmed it. */
  storedAs: number | undefined
  /** The sequence up to which its queue had been delivered when it was published. */
  deliveredBefore = 0
  /** When to ask JetStream about it, and since when that question has been unanswered. */
  confirmAt = 0
  confirmingSince: number | undefined
}

/** The queue of a pool, in all versions of the protocol. Times are monotonic, in milliseconds. */
export class StreamQueue {
  /** The number of publications so far, and the number of the latest claimed one. */
  publications = 0
  claimedUpTo = 0
  /** When to ask for its state, and since when that question has been unanswered. */
  askAt = 0
  askingSince: number | undefined
  /** When to look for workers that do not announce themselves. */
  lookAt = 0
  /** The stream sequence up to which each version's queue has been delivered. */
  readonly delivered = new Map<Version, number>()
  /** When JetStream last answered a confirmation, whether a later one is unanswered, and when to try again. */
  answeredAt = Number.NEGATIVE_INFINITY
  awaitsAnswer = false
  probeAt = 0
}
