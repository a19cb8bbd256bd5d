/** Sizes and timings of the protocol on which ingress and worker must agree. */
import { holdMs } from "../../nats/Reconnect.ts"

/** Request bodies up to this many bytes travel in the job message; larger ones are pulled by the worker. */
export const inlineBodyBytes = 512 * 1024

/** The largest payload of one frame, in bytes. NATS's own limit of 1 MiB covers payload and headers. */
export const frameBytes = 256 * 1024

/** How many bytes a worker may be ahead of the client. */
export const windowBytes = 1024 * 1024

/** How often a worker sends a heartbeat for each running job, in milliseconds. */
export const heartbeatMs = 2_000

/** A job that sends nothing for this long is lost although its worker is alive: three heartbeats and some slack. */
export const jobSilenceMs = 3 * heartbeatMs + 1_000

/** The same while NATS is unreachable: long enough that short outages cost no jobs, but no client waits forever. */
export const awaySilenceMs = 30_000

/** How long ingress waits after an outage for repeated claims before it publishes unclaimed jobs again. */
export const reclaimMs = 2 * holdMs

/** Ingress pings a worker that has sent nothing for this long. */
export const pingAfterMs = 300

/**
 * A worker is gone if its subjects still have no listener after this long. If one of several servers dies, its clients
 * reconnect to another within a moment, during which they have no listeners either.
 */
export const workerGoneAfterMs = 350

/** The same for an ingress. Long enough for it to reconnect, after which its answers are sent again. */
export const ingressGoneAfterMs = 5_000

/** A worker that does not answer a ping for this long is considered frozen. */
export const pongWithinMs = 1_900

/**
 * The same if the worker's NATS server may be frozen instead. Within this time the worker notices that and connects to another
 * server, so that a job that may have been paid for is not given up.
 */
export const serverChangeWithinMs = 6_000

/** How often ingress checks deadlines and silences. */
export const tickMs = 200

/** A job that waits for a provider for longer than this holds no slot. Shorter waits are not worth the messages about them. */
export const waitMs = 50

/** A worker starts a job that has waited for longer than this only after ingress has confirmed it. */
export const waitedLongMs = 1_000

/**
 * Ingress publishes an overtaken job again only after this long: it was probably delivered to a dead or frozen worker. Longer than
 * `waitedLongMs`, so that this worker, if it wakes, asks ingress before it starts.
 */
export const overtakenAfterMs = 1.5 * waitedLongMs

/** JetStream redelivers a job whose worker has not reported progress for this long. */
export const ackWaitMs = 3 * heartbeatMs

/** How long the job of a task may wait and run, in milliseconds. */
export const taskAgeMs = 24 * 60 * 60_000

/** The same for a batch, whose lines may run for a day before their results are assembled. */
export const batchAgeMs = 2 * taskAgeMs

/** How many times JetStream delivers the same attempt. */
export const maxDeliveries = 4

/** Maximum number of attempts at one job. */
export const maxAttempts = 3

/**
 * How often workers and ingresses announce unchanged slots and occupancy, and after how much silence an announcement expires, in
 * milliseconds.
 */
export const announcementMs = { every: 500, expires: 5_000 }

/**
 * The interval of periodic work, instead of `tickMs` or the like, while a worker or an ingress has no open jobs and there is a
 * single NATS server. Announcements expire only after more than two of these.
 */
export const idleTickMs = 2_000

/**
 * If this many workers disappear while they run a job, the job counts as the cause and gets no further attempt. Draining
 * workers report the loss and do not count.
 */
export const maxLosses = 2
