/** The protocol's sizes and times, where ingress and worker must agree. */
import { holdMs } from "../../nats/Reconnect.ts"

/** Request bodies up to this many bytes travel in the job message; larger ones are pulled by the worker. */
export const inlineBodyBytes = 512 * 1024

/** The largest payload of one frame, in bytes. NATS's own limit of 1 MiB covers payload and headers. */
export const frameBytes = 256 * 1024

/** How many bytes a worker may send beyond what the client has taken. */
export const windowBytes = 1024 * 1024

/** A worker repeats its sign of life for each running job at this interval, in milliseconds. */
export const heartbeatMs = 2_000

/** A job whose worker lives, but that has sent nothing for this long, is lost: three heartbeats and some slack. */
export const jobSilenceMs = 3 * heartbeatMs + 1_000

/** The same while NATS is away, when nobody can be heard: short absences cost nothing, and no client waits for ever. */
export const awaySilenceMs = 30_000

/** How long after its return ingress waits for workers to claim anew before it publishes unclaimed jobs again. */
export const reclaimMs = 2 * holdMs

/** A worker that has sent nothing for this long is asked whether it lives. */
export const pingAfterMs = 300

/**
 * That nobody listens on the subjects of a worker means that it is gone only where that is still so after this long. Where
 * one of several servers dies, its clients go to another one within a moment, of which the rest of the bus sees only that.
 */
export const workerGoneAfterMs = 350

/** The same of an ingress, which nobody has to notice within a second. */
export const ingressGoneAfterMs = 1_000

/** A worker that has not answered a ping for this long is taken for frozen. */
export const pongWithinMs = 1_900

/** How often ingress looks at its clocks. */
export const tickMs = 200

/** A job that has lain longer than this in the queue is begun only when ingress confirms that it still wants it. */
export const waitedLongMs = 1_000

/**
 * A job that has lain for this long, and that others have overtaken, was given to a worker that has not begun it and is
 * likely dead or frozen: it is published once more. Long enough that the worker, should it wake, will ask first.
 */
export const overtakenAfterMs = 2 * waitedLongMs

/** JetStream gives a job to another worker when its worker has not said for this long that it is working. */
export const ackWaitMs = 3 * heartbeatMs

/** How often JetStream gives out the same attempt before the worker that holds it must end it. */
export const maxDeliveries = 4

/** At most this many attempts at one job. */
export const maxAttempts = 3

/**
 * How often workers and ingresses announce slots and occupancy although nothing has changed, in milliseconds, and after how
 * much silence what they announced is forgotten.
 */
export const announcementMs = { every: 500, expires: 3_000 }

/**
 * A job over which this many workers were lost without a word is taken for the cause, and is given to no other. Draining
 * workers say that they go, and do not count.
 */
export const maxLosses = 2
