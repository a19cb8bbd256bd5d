/**
 * The names of everything on NATS: subjects, streams, consumers, buckets and headers. README.md beside this file shows
 * who publishes and who subscribes.
 *
 * Identifiers are base62 (`nuid`), so a token never needs escaping; pools are checked by the catalogue's schema.
 */
import type { Workload } from "../../contract/Operation.ts"
import { messageIdHeader } from "../../nats/Outbox.ts"

/** The version of this protocol, sent with every job. A worker refuses a job of another version. */
export const protocolVersion = "2"

/** The job queue of a pool. */
export const jobSubject = (workload: Workload, pool: string): string => `jobs.${workload}.${pool}`
export const jobStream = (workload: Workload): string => `JOBS_${workload.toUpperCase()}`
export const jobStreamSubjects = (workload: Workload): string => `jobs.${workload}.>`

/** Where a pull request for the next jobs of a pool goes (JetStream API). */
export const pullSubject = (workload: Workload, pool: string): string =>
  `$JS.API.CONSUMER.MSG.NEXT.${jobStream(workload)}.${pool}`

/** The reply subject of one attempt at a job. */
export const replySubject = (workload: Workload, ingress: string, job: string, attempt: number): string =>
  `r.${workload}.${ingress}.${job}.${attempt}`
/** Everything that is sent to one ingress. */
export const replyInbox = (ingress: string): string => `r.*.${ingress}.>`
/** Where an ingress hears what a worker says of itself: that it lives, and which jobs it has claimed. */
export const aboutWorkerSubject = (workload: Workload, ingress: string, worker: string): string =>
  `r.${workload}.${ingress}.${workerToken}.${worker}`
/** Stands in the place of a job's id where a message is about the worker as a whole. */
export const workerToken = "-"

/** Takes a reply subject apart. For what is about a worker, `job` is `workerToken` and `attempt` the worker's id. */
export const parseReply = (
  subject: string
): { readonly ingress: string; readonly job: string; readonly attempt: string } => {
  const attemptAt = subject.lastIndexOf(".")
  const jobAt = subject.lastIndexOf(".", attemptAt - 1)
  const ingressAt = subject.lastIndexOf(".", jobAt - 1)
  return {
    ingress: subject.slice(ingressAt + 1, jobAt),
    job: subject.slice(jobAt + 1, attemptAt),
    attempt: subject.slice(attemptAt + 1)
  }
}

/** The workload in a reply subject. */
export const workloadOf = (subject: string): Workload => subject.split(".", 2)[1] as Workload

/** Where a worker hears about one attempt at a job. */
export const controlSubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `ctl.${workload}.${worker}.${job}.${attempt}`
/** Where a worker hears from the server that an ingress, to which it sent its claims, is gone. */
export const ingressGoneSubject = (workload: Workload, worker: string, ingress: string): string =>
  `ctl.${workload}.${worker}.${workerToken}.${ingress}`
/** The ingress that is gone, where that is what a control subject is about. */
export const ingressGone = (subject: string): string | undefined => {
  const { key } = parseControl(subject)
  return key.startsWith(`${workerToken}.`) ? key.slice(workerToken.length + 1) : undefined
}
/** Where a worker is asked whether it lives. */
export const pingSubject = (workload: Workload, worker: string): string =>
  controlSubject(workload, worker, workerToken, 0)
export const controlInbox = (workload: Workload, worker: string): string => `ctl.${workload}.${worker}.>`

/** Where the body of a large request is sent, once a worker has asked for it. */
export const bodySubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `in.${workload}.${worker}.${job}.${attempt}`
export const bodyInbox = (workload: Workload, worker: string): string => `in.${workload}.${worker}.>`

/**
 * Takes a control or body subject apart, or the reply subject of a frame. `key` names the attempt within the worker:
 * `attemptKey(job, attempt)`. `sequence` is the number of the frame, `NaN` where there is none.
 */
export const parseControl = (
  subject: string
): { readonly worker: string; readonly key: string; readonly sequence: number } => {
  const workerAt = subject.indexOf(".", subject.indexOf(".") + 1) + 1
  const keyAt = subject.indexOf(".", workerAt) + 1
  const keyEnd = subject.indexOf(".", subject.indexOf(".", keyAt) + 1)
  return {
    worker: subject.slice(workerAt, keyAt - 1),
    key: keyEnd === -1 ? subject.slice(keyAt) : subject.slice(keyAt, keyEnd),
    sequence: keyEnd === -1 ? Number.NaN : Number(subject.slice(keyEnd + 1))
  }
}
/** Where every process is asked what it is doing. */
export const presenceSubject = "presence"

/** Where a worker announces how many slots of a pool it has. */
export const slotsSubject = (workload: Workload, pool: string, worker: string): string =>
  `slots.${workload}.${pool}.${worker}`
export const slotsSubjects = (workload: Workload): string => `slots.${workload}.>`
export const slotsInbox = "slots.>"
export const parseSlots = (
  subject: string
): { readonly workload: Workload; readonly pool: string; readonly worker: string } => {
  const [, workload, pool = "", worker = ""] = subject.split(".")
  return { workload: workload as Workload, pool, worker }
}
/** Where an ingress announces what each tenant has and wants of every pool. */
export const occupancySubject = (ingress: string): string => `occupancy.${ingress}`
export const occupancyInbox = "occupancy.*"
/** Which ingress has announced it. */
export const announcerOf = (subject: string): string => subject.slice(subject.indexOf(".") + 1)

export const attemptKey = (job: string, attempt: number): string => `${job}.${attempt}`

export const header = {
  /** Everything about a job; see `JobHeader.ts`. */
  job: "Gw-Job",
  messageId: messageIdHeader,
  /** What a frame, or a control, is: a word, and behind a space what belongs to it. */
  frame: "Gw-Frame",
  control: "Gw-Ctl",
  /** Of a part of the request's body, in bytes. */
  offset: "Gw-Offset",
  /** NATS's own: how much of a pull request was not served when it ended. */
  pendingMessages: "Nats-Pending-Messages"
} as const
