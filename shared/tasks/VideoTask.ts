/**
 * The record of a video task and its state transitions, as pure functions; `VideoTasks` stores their results.
 *
 * A record is one video: its own job, its own call to a provider, its own usage. A request for several videos makes several
 * records, which clients see as one task under the id of the first.
 *
 * ```
 *            claimed
 *   queued ───────────▶ in_progress ◀─┐ claimed (lease over), starting, started,
 *     │                  │   │   │    │ renewed, released
 *     │ cancelled        │   │   └────┘
 *     ▼                  ▼   └──────────▶ completed | failed
 *   cancelled ◀──────────┘
 * ```
 *
 * A worker owns a task by a claim that it must renew. Claims are numbered, and writes with an older number are refused, so a
 * worker that wakes from a freeze cannot overwrite its successor's work.
 */
import { Effect, type Option, Result, Schema } from "effect"
import { buckets } from "../nats/Storage.ts"
import { JobError } from "../contract/JobError.ts"
import { TaskStatus, VideoFormat, VideoMetadata } from "../contract/operations/VideoGenerations.ts"

/** The owner's id on the bus and the number of its claim. */
export const Owner = Schema.Struct({ worker: Schema.String, claim: Schema.Int })
export type Owner = typeof Owner.Type

/** The provider's task that makes the video. */
export const ProviderTask = Schema.Struct({
  /** The provider's name in the catalogue, and the provider's name of the model. */
  provider: Schema.String,
  model: Schema.String,
  /** The provider's reference to the task, which only its engine can read. `null` until the provider has answered. */
  task: Schema.Unknown
})
export type ProviderTask = typeof ProviderTask.Type

export const VideoResult = Schema.Struct({
  format: VideoFormat,
  /** Bytes. */
  size: Schema.Int,
  metadata: VideoMetadata
})
export type VideoResult = typeof VideoResult.Type

export const VideoTask = Schema.Struct({
  /** `task_` and 32 base62 characters; the further videos of a request add `-` and their index. */
  id: Schema.String,
  /** The number of videos of the request, and which of them this one is, from 0. Absent in records of older gateways. */
  count: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
  index: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  tenant: Schema.String,
  operation: Schema.String,
  model: Schema.String,
  pool: Schema.String,
  /** SHA-256 of the request's body, part of the name of the stored object. */
  bodyHash: Schema.String,
  /** The span of the request that created it; later spans belong to its trace or link to it. */
  traceparent: Schema.optionalKey(Schema.String),
  status: TaskStatus,
  /** Percent. */
  progress: Schema.Int,
  owner: Schema.NullOr(Owner),
  /** The number of the last claim; 0 before the first. */
  claims: Schema.Int,
  /** How many claims have expired without a release: the worker died or froze. Absent in records of older gateways. */
  losses: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** When the owner's claim expires, in epoch milliseconds. */
  leaseUntil: Schema.Finite,
  /** Set before the call to the provider, so that a later worker knows that it may have been made. */
  providerTask: Schema.NullOr(ProviderTask),
  result: Schema.NullOr(VideoResult),
  error: Schema.NullOr(JobError),
  /** Epoch milliseconds. */
  created: Schema.Finite,
  updated: Schema.Finite,
  ended: Schema.NullOr(Schema.Finite)
})
export type VideoTask = typeof VideoTask.Type

/** How long a record and its objects are stored after the last change, in milliseconds: 24 hours. */
export const keptForMs = buckets.videoTasks.ttlMs

/** How long a claim lasts without renewal, in milliseconds: less than JetStream takes to redeliver the task. */
export const leaseMs = 5_000

export type TaskEvent =
  | { readonly event: "claimed"; readonly worker: string }
  /** The worker is about to call the provider. */
  | { readonly event: "starting"; readonly owner: Owner; readonly provider: string; readonly model: string }
  /** The provider has accepted the task. */
  | { readonly event: "started"; readonly owner: Owner; readonly task: unknown }
  | { readonly event: "renewed"; readonly owner: Owner; readonly progress: number }
  /** The owner releases the task for another worker to continue. */
  | { readonly event: "released"; readonly owner: Owner }
  | { readonly event: "completed"; readonly owner: Owner; readonly result: VideoResult }
  | { readonly event: "failed"; readonly owner: Owner; readonly error: JobError }
  | { readonly event: "cancelled" }

/** `ended`: the task accepts no further events. `fenced`: another worker owns it, or the sender has lost it. */
export type Refusal = "ended" | "fenced"

interface Transition<Event> {
  readonly from: ReadonlyArray<TaskStatus>
  readonly to: TaskStatus
  /** The fields that change; `undefined` if the event is fenced. */
  change(record: VideoTask, event: Event, now: number): Partial<VideoTask> | undefined
}

const open: ReadonlyArray<TaskStatus> = ["queued", "in_progress"]

export const hasEnded = (status: TaskStatus): boolean => !open.includes(status)

/** An event that leads to `in_progress` also renews the lease. */
const transitions: {
  readonly [Name in TaskEvent["event"]]: Transition<Extract<TaskEvent, { readonly event: Name }>>
} = {
  claimed: {
    from: open,
    to: "in_progress",
    change: ({ claims, leaseUntil, losses, owner }, { worker }, now) => {
      if (owner !== null && now < leaseUntil) return undefined
      const claim = claims + 1
      // a released task has no owner and counts no loss
      return { owner: { worker, claim }, claims: claim, losses: owner === null ? losses : losses + 1 }
    }
  },
  starting: {
    from: ["in_progress"],
    to: "in_progress",
    change: (_, { model, provider }) => ({ providerTask: { provider, model, task: null } })
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
    change: (record, { progress }) => ({ progress: Math.max(record.progress, Math.min(99, Math.floor(progress))) })
  },
  released: { from: ["in_progress"], to: "in_progress", change: (_, __, now) => ({ owner: null, leaseUntil: now }) },
  completed: { from: ["in_progress"], to: "completed", change: (_, { result }) => ({ result, progress: 100 }) },
  failed: { from: ["in_progress"], to: "failed", change: (_, { error }) => ({ error }) },
  cancelled: { from: open, to: "cancelled", change: () => ({}) }
}

/** Applies an event to a record at `now` in epoch milliseconds. */
export const transition = (record: VideoTask, event: TaskEvent, now: number): Result.Result<VideoTask, Refusal> => {
  const { change, from, to }: Transition<TaskEvent> = transitions[event.event]
  if (!from.includes(record.status)) return Result.fail(hasEnded(record.status) ? "ended" : "fenced")
  if ("owner" in event && !isOwner(record, event.owner)) return Result.fail("fenced")
  const changed = change(record, event, now)
  if (changed === undefined) return Result.fail("fenced")
  return Result.succeed({
    ...record,
    ...(hasEnded(to) ? { ended: now, owner: null } : { leaseUntil: now + leaseMs }),
    ...changed,
    status: to,
    updated: now
  })
}

const isOwner = ({ owner }: VideoTask, { claim, worker }: Owner): boolean =>
  owner !== null && owner.worker === worker && owner.claim === claim

/** The id of the first record of a request. */
export const firstIdOf = (id: string): string => id.split("-", 1)[0] ?? id

/** The id of the record of another video of the same request, by its index. */
export const siblingId = (id: string, index: number): string =>
  index === 0 ? firstIdOf(id) : `${firstIdOf(id)}-${index}`

/** New records for the other videos of the request. */
export const siblingsOf = (first: VideoTask, now: number): ReadonlyArray<VideoTask> =>
  Array.from({ length: first.count - 1 }, (_, before) => {
    const index = before + 1
    return make({ ...first, id: siblingId(first.id, index), index }, now)
  })

/** The status of all videos of a request together. */
export const statusOf = (records: ReadonlyArray<VideoTask>): TaskStatus => {
  const has = (status: TaskStatus): boolean => records.some((record) => record.status === status)
  if (records.some(({ status }) => !hasEnded(status))) {
    return records.every(({ status }) => status === "queued") ? "queued" : "in_progress"
  }
  return (["cancelled", "failed"] as const).find(has) ?? "completed"
}

interface NewTask
  extends
    Pick<VideoTask, "id" | "tenant" | "operation" | "model" | "pool" | "bodyHash" | "traceparent">,
    Partial<Pick<VideoTask, "count" | "index">>
{}

/** A new task. */
export const make = (
  { bodyHash, count = 1, id, index = 0, model, operation, pool, tenant, traceparent }: NewTask,
  now: number
): VideoTask => ({
  id,
  tenant,
  operation,
  model,
  pool,
  bodyHash,
  ...(traceparent === undefined ? {} : { traceparent }),
  count,
  index,
  status: "queued",
  progress: 0,
  owner: null,
  claims: 0,
  losses: 0,
  leaseUntil: now,
  providerTask: null,
  result: null,
  error: null,
  created: now,
  updated: now,
  ended: null
})

const codec = Schema.fromJsonString(VideoTask)
export const encode = Schema.encodeSync(codec)

/** `None` for a record that a newer gateway wrote in a format unknown to this one. */
export const decode: (text: string) => Option.Option<VideoTask> = Schema.decodeUnknownOption(codec)
