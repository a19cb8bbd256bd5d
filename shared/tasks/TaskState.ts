/**
 * The states of a task, as pure functions from record, event and time to record; the README has the diagram. `RecordStore.ts`
 * stores the results by compare-and-set, so that the second of two concurrent events applies to the first one's result.
 *
 * Ingress creates and cancels tasks; any reader ends abandoned ones. All other events come from the worker that has claimed the task.
 * A claim expires unless it is renewed. Claims are numbered, and events with an older number are refused, so a worker that wakes from
 * a freeze cannot overwrite its successor's work.
 */
import { Result } from "effect"
import { maxLosses, taskAgeMs } from "../bus/protocol/Timings.ts"
import { type JobError, QueueTimeout, WorkerLost } from "../contract/JobError.ts"
import type { TaskStatus } from "../contract/Operation.ts"
import type { Holder, TaskRecord } from "./TaskRecord.ts"

/** How long a claim lasts without renewal, in milliseconds: less than JetStream takes to redeliver the task. */
export const leaseMs = 5_000

export type TaskEvent =
  | { readonly event: "claimed"; readonly worker: string }
  /** The worker is about to call the provider. */
  | { readonly event: "starting"; readonly holder: Holder; readonly provider: string; readonly model: string }
  /** The call has failed, and the provider has certainly done no work. */
  | { readonly event: "declined"; readonly holder: Holder }
  /** The provider has accepted the work. */
  | { readonly event: "started"; readonly holder: Holder; readonly task: unknown }
  /** `state` is set if the work has progressed, which resets the count of losses. */
  | { readonly event: "renewed"; readonly holder: Holder; readonly progress: number; readonly state?: unknown }
  /** The worker releases the task, for another worker to continue. */
  | { readonly event: "released"; readonly holder: Holder }
  /** The task waits in its queue again, because its key's limits do not allow the work now. */
  | { readonly event: "deferred"; readonly holder: Holder }
  | { readonly event: "completed"; readonly holder: Holder; readonly result: unknown }
  | { readonly event: "failed"; readonly holder: Holder; readonly error: JobError }
  /** A client asks the worker, or the next one, to end the work early. */
  | { readonly event: "stopping" }
  | { readonly event: "cancelled" }
  /** The task is abandoned: no worker will end it. */
  | { readonly event: "expired" }

/** `ended`: the task accepts no further events. `fenced`: the sender does not have the task, or the event does not apply now. */
export type Refusal = "ended" | "fenced"

interface Transition<Event> {
  readonly from: ReadonlyArray<TaskStatus>
  readonly to: TaskStatus
  /** The fields that change; `undefined` if the event is fenced. */
  change(record: TaskRecord, event: Event, now: number): Partial<TaskRecord> | undefined
}

const open: ReadonlyArray<TaskStatus> = ["queued", "in_progress"]

export const hasEnded = (status: TaskStatus): boolean => !open.includes(status)

/** An event whose result is not an ended task also renews the claim, unless `change` sets `leaseUntil`. */
const transitions: {
  readonly [Name in TaskEvent["event"]]: Transition<Extract<TaskEvent, { readonly event: Name }>>
} = {
  claimed: {
    from: open,
    to: "in_progress",
    change: ({ claims, holder, leaseUntil, losses }, { worker }, now) => {
      if (holder !== null && now < leaseUntil) return undefined
      const claim = claims + 1
      // a released task has no holder and counts no loss
      return { holder: { worker, claim }, claims: claim, losses: holder === null ? losses : losses + 1 }
    }
  },
  starting: {
    from: ["in_progress"],
    to: "in_progress",
    change: (_, { model, provider }) => ({ providerTask: { provider, model, task: null } })
  },
  declined: {
    from: ["in_progress"],
    to: "in_progress",
    change: ({ providerTask }) => {
      if (providerTask === null || providerTask.task !== null) return undefined
      const { model, provider } = providerTask
      return { providerTask: null, declinedBy: { provider, model } }
    }
  },
  started: {
    from: ["in_progress"],
    to: "in_progress",
    change: ({ providerTask }, { task }) =>
      providerTask === null ? undefined : { providerTask: { ...providerTask, task } }
  },
  renewed: {
    from: ["in_progress"],
    to: "in_progress",
    // progress never goes back, even if another worker starts over
    change: (record, { progress, state }) => ({
      progress: Math.max(record.progress, Math.min(99, Math.floor(progress))),
      ...(state === undefined ? {} : { state, losses: 0 })
    })
  },
  released: { from: ["in_progress"], to: "in_progress", change: (_, __, now) => ({ holder: null, leaseUntil: now }) },
  deferred: {
    from: ["in_progress"],
    to: "queued",
    change: ({ providerTask }, _, now) => providerTask === null ? { holder: null, leaseUntil: now } : undefined
  },
  completed: { from: ["in_progress"], to: "completed", change: (_, { result }) => ({ result, progress: 100 }) },
  failed: { from: ["in_progress"], to: "failed", change: (_, { error }) => ({ error }) },
  stopping: {
    from: open,
    to: "in_progress",
    change: ({ leaseUntil, stopping }, _, now) => ({ stopping: stopping ?? now, leaseUntil })
  },
  cancelled: { from: open, to: "cancelled", change: () => ({}) },
  expired: {
    from: open,
    to: "failed",
    change: (record, _, now) =>
      isAbandoned(record, now)
        ? { error: record.providerTask === null ? new QueueTimeout({ retryAfterMs: 1_000 }) : new WorkerLost() }
        : undefined
  }
}

/** Applies an event to a record at `now` in epoch milliseconds. */
export const transition = (record: TaskRecord, event: TaskEvent, now: number): Result.Result<TaskRecord, Refusal> => {
  const { change, from, to }: Transition<TaskEvent> = transitions[event.event]
  if (!from.includes(record.status)) return Result.fail(hasEnded(record.status) ? "ended" : "fenced")
  if ("holder" in event && !isHolder(record, event.holder)) return Result.fail("fenced")
  const changed = change(record, event, now)
  if (changed === undefined) return Result.fail("fenced")
  return Result.succeed({
    ...record,
    ...(hasEnded(to) ? { ended: now, holder: null } : { leaseUntil: now + leaseMs }),
    ...changed,
    status: to,
    updated: now
  })
}

const isHolder = ({ holder }: TaskRecord, { claim, worker }: Holder): boolean =>
  holder !== null && holder.worker === worker && holder.claim === claim

/** How long after the creation of its record a task may be submitted, plus the difference between clocks, in milliseconds. */
const submittedWithinMs = 2 * 60_000

/** Whether the queue no longer has the task's job, and no worker runs it. */
export const isAbandoned = (
  { created, expires = created + taskAgeMs, leaseUntil, status }: TaskRecord,
  now: number
): boolean => !hasEnded(status) && now >= leaseUntil && now >= expires + submittedWithinMs

/** Whether the task has probably killed its workers, and so must not be started again: after `most` losses in a row. */
export const isPoison = ({ losses }: TaskRecord, most = maxLosses): boolean => losses >= most

/**
 * How a worker continues a task that it has claimed. `begin`: no provider has the work, or a repetition is harmless. `continue`: a
 * provider has it under this reference. `unconfirmed`: a provider may have it and charge for it, so the task fails.
 */
export type Resumption<Provider> =
  | { readonly step: "begin" }
  | { readonly step: "continue"; readonly provider: Provider; readonly reference: unknown }
  | { readonly step: "unconfirmed"; readonly provider: string }

/** `find` returns the provider of the record's call; `undefined` if it is no longer configured. */
export const resumption = <Provider extends { readonly mayRepeat: boolean }>(
  { providerTask }: TaskRecord,
  find: (provider: string, model: string) => Provider | undefined
): Resumption<Provider> => {
  if (providerTask === null) return { step: "begin" }
  const { model, provider: name, task: reference } = providerTask
  const provider = find(name, model)
  if (provider !== undefined && reference !== null) return { step: "continue", provider, reference }
  // the last worker may have been lost before or after it called the provider
  return provider?.mayRepeat === true ? { step: "begin" } : { step: "unconfirmed", provider: name }
}

/**
 * What the queue does with a delivery. `done`: removes the task. Otherwise it delivers the task again, perhaps to another worker:
 * soon (`later`) or after `afterMs` milliseconds.
 */
export type Settlement = "done" | "later" | { readonly afterMs: number }

/**
 * How long a new task may seem to have no record, in milliseconds. Ingress stores the record before it submits the task, but a NATS
 * server that is no longer the leader, and answers as if it were, may not have it.
 */
const unknownForMs = 60_000

/**
 * Settles the delivery of a task whose record refuses an event. `unknown`: there is no record. `unreadable`: a newer gateway has
 * written the record and must continue the task. `ageMs`: the time since the task was submitted.
 */
export const settlementOf = (refusal: Refusal | "unknown" | "unreadable", ageMs: number): Settlement =>
  refusal === "ended" || (refusal === "unknown" && ageMs >= unknownForMs) ? "done" : "later"

/** The combined status of all records of a request. */
export const statusOf = (records: ReadonlyArray<TaskRecord>): TaskStatus => {
  const has = (status: TaskStatus): boolean => records.some((record) => record.status === status)
  if (records.some(({ status }) => !hasEnded(status))) {
    return records.every(({ status }) => status === "queued") ? "queued" : "in_progress"
  }
  return (["cancelled", "failed"] as const).find(has) ?? "completed"
}
