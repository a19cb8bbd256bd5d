/**
 * Names on NATS: subjects, job streams and headers. The README of `shared/bus` lists publishers and subscribers.
 *
 * Identifiers are base62 (`nuid`), so tokens never need escaping; the catalogue's schema checks the names of pools.
 */
import type { Workload } from "../../contract/Operation.ts"
import { messageIdHeader } from "../../nats/Outbox.ts"

/** The protocol versions that workers read. Each job names the version in which it is written and answered. */
export const versions = [2, 3] as const
export type Version = typeof versions[number]
export const newestVersion: Version = 3

/**
 * A queue of durable tasks, which are stored on disk and have slots of their own. Every video is a task. The queue of videos is
 * older than the other task queues, so it is named like a queue of jobs.
 */
export type TaskQueueName = "video" | OwnersQueueName
type OwnersQueueName = `${Exclude<Workload, "video">}-tasks` | typeof batchQueue
/** The queue of batches. The process that runs a batch divides it into tasks of workloads. It has one pool, the default one. */
export const batchQueue = "batches"
export const batchPool = "default"
export type QueueName = Workload | TaskQueueName

export const taskQueueOf = (workload: Workload): TaskQueueName => workload === "video" ? workload : `${workload}-tasks`
/** All queues of a workload. */
export const queuesOf = (workload: Workload): ReadonlyArray<QueueName> => [
  ...new Set([workload, taskQueueOf(workload)])
]
/** The queues of these pools, each with its pool. */
export const queuesIn = (
  pools: ReadonlyArray<{ readonly workload: Workload; readonly pool: string }>
): ReadonlyArray<{ readonly queue: QueueName; readonly pool: string }> => [
  ...pools.flatMap(({ pool, workload }) => queuesOf(workload).map((queue) => ({ queue, pool }))),
  { queue: batchQueue, pool: batchPool }
]
/** Whether each owner has a subject of its own in the queue, so that the number of its tasks can be limited. */
export const isByOwner = (queue: QueueName): queue is OwnersQueueName =>
  queue === batchQueue || queue.endsWith("-tasks")
/** How many tasks one owner may have, waiting or running, in one pool; and how many batches. */
export const mostOfOwner = (queue: OwnersQueueName): number => queue === batchQueue ? 100 : 1_000
export const isTaskQueue = (queue: QueueName): queue is TaskQueueName => queue === "video" || isByOwner(queue)

/** The versions in which a queue's jobs are stored, oldest first. Tasks have no frames, so they need only one. */
export const versionsOf = (queue: QueueName): ReadonlyArray<Version> =>
  queue === "video" ? [2] : isByOwner(queue) ? [3] : versions
export const newestOf = (queue: QueueName): Version => versionsOf(queue).at(-1) ?? 2

/** The suffix for a version in the names of subjects and streams. */
const suffixOf = (version: Version): string => version === 2 ? "" : String(version)

/** The job queue of a pool, one for each version. */
export const jobSubject = (queue: QueueName, pool: string, version: Version): string =>
  `jobs${suffixOf(version)}.${queue}.${pool}`
/** The subject of one owner's tasks; `owner` is from `ownerToken`. */
export const taskSubject = (queue: TaskQueueName, pool: string, owner: string): string =>
  queue === "video" ? jobSubject(queue, pool, 2) : `${jobSubject(queue, pool, 3)}.${owner}`
/** All jobs of a pool. */
export const poolSubjects = (queue: QueueName, pool: string, version: Version): string =>
  isByOwner(queue) ? `${jobSubject(queue, pool, version)}.*` : jobSubject(queue, pool, version)
export const jobStream = (queue: QueueName, version: Version): string =>
  `JOBS${suffixOf(version)}_${queue.toUpperCase()}`
export const jobStreamSubjects = (queue: QueueName, version: Version): string => `jobs${suffixOf(version)}.${queue}.>`

/** JetStream's subject for pull requests to a pool. */
export const pullSubject = (queue: QueueName, pool: string, version: Version): string =>
  `$JS.API.CONSUMER.MSG.NEXT.${jobStream(queue, version)}.${pool}`

/** JetStream's subject for requests about the state of a pool's queue. */
export const queueStateSubject = (queue: QueueName, pool: string, version: Version): string =>
  `$JS.API.CONSUMER.INFO.${jobStream(queue, version)}.${pool}`

/** The reply subject of one attempt at a job. */
export const replySubject = (workload: Workload, ingress: string, job: string, attempt: number): string =>
  `r.${workload}.${ingress}.${job}.${attempt}`
/** All frames to one ingress. */
export const replyInbox = (ingress: string): string => `r.*.${ingress}.>`
/** A worker's messages to an ingress about itself: pongs and claims. */
export const aboutWorkerSubject = (workload: Workload, ingress: string, worker: string): string =>
  `r.${workload}.${ingress}.${workerToken}.${worker}`
/** Replaces the job's id in messages about the worker as a whole. */
export const workerToken = "-"

/** Parses a reply subject. In messages about a worker, `job` is `workerToken` and `attempt` the worker's id. */
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

/** The workload of a reply subject. */
export const workloadOf = (subject: string): Workload => subject.split(".", 2)[1] as Workload

/** The subject for controls about one attempt. */
export const controlSubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `ctl.${workload}.${worker}.${job}.${attempt}`
/**
 * The subject for an ingress's controls about its whole link with a worker. Also the reply subject of claims and bundles, so that
 * the NATS server answers `503` there if the ingress is gone.
 */
export const linkSubject = (workload: Workload, worker: string, ingress: string): string =>
  `ctl.${workload}.${worker}.${workerToken}.${ingress}`
/** The ingress in a `linkSubject`; `undefined` for other control subjects. */
export const linkedIngress = (subject: string): string | undefined => {
  const { key } = parseControl(subject)
  return key.startsWith(`${workerToken}.`) ? key.slice(workerToken.length + 1) : undefined
}
/** Pings to a worker. */
export const pingSubject = (workload: Workload, worker: string): string =>
  controlSubject(workload, worker, workerToken, 0)
export const controlInbox = (workload: Workload, worker: string): string => `ctl.${workload}.${worker}.>`
/** Asks every worker to announce its slots. */
export const announceSubject = (workload: Workload): string => pingSubject(workload, workerToken)

/** The subject for parts of a large request's body, which the worker pulls. */
export const bodySubject = (workload: Workload, worker: string, job: string, attempt: number): string =>
  `in.${workload}.${worker}.${job}.${attempt}`
export const bodyInbox = (workload: Workload, worker: string): string => `in.${workload}.${worker}.>`

/**
 * Parses a control or body subject, or the reply subject of a frame. `key` is `attemptKey(job, attempt)`. `sequence` is the
 * number of the frame, `NaN` if it has none.
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
/** The subject on which workers look for ingresses that admit the work of tasks; each ingress answers with its id. */
export const admittersSubject = (workload: Workload): string => `admit.${workload}`
export const admittersSubjects = "admit.*"
/** The subject on which workers ask one ingress to admit the work of tasks. */
export const admitSubject = (workload: Workload, ingress: string): string => `admit.${workload}.${ingress}`
export const admitInbox = (ingress: string): string => `admit.*.${ingress}`

/** The subject on which every process answers with its state. */
export const presenceSubject = "presence"

/** The subject on which the processes agree on edits of the catalogue. */
export const catalogueSubject = "catalogue"

/** The subject of a worker's announcements of its slots in a pool; `version` is the newest one that it reads. */
export const slotsSubject = (workload: Workload, pool: string, worker: string, version: Version): string =>
  `slots.${workload}.${pool}.${worker}.${version}`
export const slotsSubjects = (workload: Workload): string => `slots.${workload}.>`
export const slotsInbox = "slots.>"
/** The worker reads all versions up to `version`. Older workers state no version and read only 2. */
export const parseSlots = (
  subject: string
): { readonly workload: Workload; readonly pool: string; readonly worker: string; readonly version: number } => {
  const [, workload, pool = "", worker = "", version = "2"] = subject.split(".")
  return { workload: workload as Workload, pool, worker, version: Number(version) }
}
/** The subject of hints that a task has a new page or has ended. A record's key has two tokens. */
export const taskHintSubject = (recordKey: string): string => `taskhint.${recordKey}`
export const taskHintSubjects = "taskhint.>"
/** The subject of an ingress's announcements of its tenants' taken slots and waiting jobs. */
export const occupancySubject = (ingress: string): string => `occupancy.${ingress}`
export const occupancyInbox = "occupancy.*"
/** The ingress in an `occupancySubject`. */
export const announcerOf = (subject: string): string => subject.slice(subject.indexOf(".") + 1)

export const attemptKey = (job: string, attempt: number): string => `${job}.${attempt}`

export const header = {
  /** All metadata of a job in version 2; see `JobMessage.ts`. */
  job: "Gw-Job",
  messageId: messageIdHeader,
  /** Type and details of a frame or control, separated by a space. */
  frame: "Gw-Frame",
  control: "Gw-Ctl",
  /** The offset of a part of the request's body, in bytes. */
  offset: "Gw-Offset",
  /** NATS's own: how many jobs of a pull request were not delivered when it ended. */
  pendingMessages: "Nats-Pending-Messages"
} as const
