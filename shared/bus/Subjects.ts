/**
 * The names of everything on NATS: subjects, streams, consumers, buckets and headers. README.md beside this file shows
 * who publishes and who subscribes.
 *
 * Identifiers are base62 (`nuid`), so a token never needs escaping; pools are checked by the catalogue's schema.
 */
import type { Workload } from "../contract/Operation.ts"

/** The version of this protocol, sent with every job. A worker refuses a job of another version. */
export const protocolVersion = "1"

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
/** The reply subject of a ping that asks a worker, not a job, whether it lives. */
export const pongSubject = (workload: Workload, ingress: string, worker: string): string =>
  `r.${workload}.${ingress}.${workerToken}.${worker}`
/** Stands in the place of a job's id where a message is about the worker as a whole. */
export const workerToken = "-"

/** Takes a reply subject apart. For a pong, `job` is `workerToken` and `attempt` the worker's id. */
export const parseReply = (subject: string): { readonly job: string; readonly attempt: string } => {
  const attemptAt = subject.lastIndexOf(".")
  const jobAt = subject.lastIndexOf(".", attemptAt - 1)
  return { job: subject.slice(jobAt + 1, attemptAt), attempt: subject.slice(attemptAt + 1) }
}

/** Where a worker hears about one attempt at a job. */
export const controlSubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `ctl.${workload}.${worker}.${job}.${attempt}`
/** Where a worker is asked whether it lives. */
export const pingSubject = (workload: Workload, worker: string): string =>
  controlSubject(workload, worker, workerToken, 0)
export const controlInbox = (workload: Workload, worker: string): string => `ctl.${workload}.${worker}.>`

/** Where the body of a large request is sent, once a worker has asked for it. */
export const bodySubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `in.${workload}.${worker}.${job}.${attempt}`
export const bodyInbox = (workload: Workload, worker: string): string => `in.${workload}.${worker}.>`

/** Takes a control or body subject apart. `key` names the attempt within the worker: `attemptKey(job, attempt)`. */
export const parseControl = (subject: string): { readonly worker: string; readonly key: string } => {
  const workerAt = subject.indexOf(".", subject.indexOf(".") + 1) + 1
  const keyAt = subject.indexOf(".", workerAt) + 1
  return { worker: subject.slice(workerAt, keyAt - 1), key: subject.slice(keyAt) }
}
export const attemptKey = (job: string, attempt: number): string => `${job}.${attempt}`

export const header = {
  version: "Gw-V",
  job: "Gw-Job",
  attempt: "Gw-Attempt",
  reply: "Gw-Reply",
  /** Epoch milliseconds after which nobody waits for the job to begin. */
  deadline: "Gw-Deadline",
  operation: "Gw-Op",
  model: "Gw-Model",
  /** An opaque id, never the key. */
  tenant: "Gw-Tenant",
  priority: "Gw-Class",
  /** `inline`: the message's payload is the request's body; `pull`: the worker asks for it after its claim. */
  body: "Gw-Body",
  bodySize: "Gw-Body-Size",
  contentType: "Content-Type",
  messageId: "Nats-Msg-Id",
  traceparent: "traceparent",
  frame: "Gw-Frame",
  sequence: "Gw-Seq",
  status: "Gw-Status",
  /** Further headers of the HTTP answer, or of the client's request, as a JSON object. */
  headers: "Gw-Headers",
  /** On the last frame: the answer is whole. */
  end: "Gw-End",
  usage: "Gw-Usage",
  redispatch: "Gw-Redispatch",
  /** On a claim: the worker does not begin before it hears `go`. */
  awaits: "Gw-Await",
  control: "Gw-Ctl",
  /** Bytes. */
  credit: "Gw-Credit",
  offset: "Gw-Offset",
  /** NATS's own: how much of a pull request was not served when it ended. */
  pendingMessages: "Nats-Pending-Messages"
} as const
