/**
 * The record of a video task and what may happen to it. Nothing here touches the bus: `VideoTasks` stores what these
 * functions return.
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
 * A worker owns a task by a claim that it has to renew. Each claim has the next number, which fences: what a worker with
 * an older number writes is refused, so one that was frozen and wakes cannot spoil the work of its successor.
 */
import { Effect, type Option, Result, Schema } from "effect"
import { buckets } from "../nats/Storage.ts"
import { JobError } from "../contract/JobError.ts"
import { TaskStatus, VideoMetadata } from "../contract/operations/VideoGenerations.ts"

/** Which worker has the task, by its id on the bus, and the number of its claim. */
export const Owner = Schema.Struct({ worker: Schema.String, claim: Schema.Int })
export type Owner = typeof Owner.Type

/** Who makes the video. */
export const ProviderTask = Schema.Struct({
  /** The provider's name in the catalogue, and its own name of the model. */
  provider: Schema.String,
  model: Schema.String,
  /** What the provider calls the task; only its engine can read it. `null` until it has answered. */
  task: Schema.Unknown
})
export type ProviderTask = typeof ProviderTask.Type

export const VideoResult = Schema.Struct({
  format: Schema.Literal("mp4"),
  /** Bytes. */
  size: Schema.Int,
  metadata: VideoMetadata
})
export type VideoResult = typeof VideoResult.Type

export const VideoTask = Schema.Struct({
  /** `task_` and 32 base62 characters. */
  id: Schema.String,
  tenant: Schema.String,
  operation: Schema.String,
  model: Schema.String,
  pool: Schema.String,
  /** SHA-256 of the request's body, under which that is stored. */
  bodyHash: Schema.String,
  /** The span of the request that made it: what later happens to it is told in its trace, or linked to it. */
  traceparent: Schema.optionalKey(Schema.String),
  status: TaskStatus,
  /** Percent. */
  progress: Schema.Int,
  owner: Schema.NullOr(Owner),
  /** The number of the last claim; 0 where there was none. */
  claims: Schema.Int,
  /** How many workers have let their claim run out without a word: died or frozen. Absent in records of older gateways. */
  losses: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** Epoch milliseconds until which the owner's claim holds. */
  leaseUntil: Schema.Finite,
  /** Set before the provider is asked, so that it is known whether it may have been. */
  providerTask: Schema.NullOr(ProviderTask),
  result: Schema.NullOr(VideoResult),
  error: Schema.NullOr(JobError),
  /** Epoch milliseconds. */
  created: Schema.Finite,
  updated: Schema.Finite,
  ended: Schema.NullOr(Schema.Finite)
})
export type VideoTask = typeof VideoTask.Type

/** How long a record and what belongs to it is kept after its last change, in milliseconds: 24 hours. */
export const keptForMs = buckets.videoTasks.ttlMs

/** How long a claim holds without renewal, in milliseconds: less than it takes JetStream to give the task to another. */
export const leaseMs = 5_000

export type TaskEvent =
  | { readonly event: "claimed"; readonly worker: string }
  /** The provider is about to be asked. */
  | { readonly event: "starting"; readonly owner: Owner; readonly provider: string; readonly model: string }
  /** The provider has taken it. */
  | { readonly event: "started"; readonly owner: Owner; readonly task: unknown }
  | { readonly event: "renewed"; readonly owner: Owner; readonly progress: number }
  /** The owner gives it up for another to go on with. */
  | { readonly event: "released"; readonly owner: Owner }
  | { readonly event: "completed"; readonly owner: Owner; readonly result: VideoResult }
  | { readonly event: "failed"; readonly owner: Owner; readonly error: JobError }
  | { readonly event: "cancelled" }

const afterwards = {
  queued: { claimed: "in_progress", cancelled: "cancelled" },
  in_progress: {
    claimed: "in_progress",
    starting: "in_progress",
    started: "in_progress",
    renewed: "in_progress",
    released: "in_progress",
    completed: "completed",
    failed: "failed",
    cancelled: "cancelled"
  },
  completed: {},
  failed: {},
  cancelled: {}
} as const satisfies Record<TaskStatus, Partial<Record<TaskEvent["event"], TaskStatus>>>

/** `ended`: nothing can happen to it any more. `fenced`: another worker has it, or the one that asks has lost it. */
export type Refusal = "ended" | "fenced"

export const hasEnded = (status: TaskStatus): boolean => Object.keys(afterwards[status]).length === 0

/** What becomes of a record by an event, at a time in epoch milliseconds. */
export const transition = (record: VideoTask, event: TaskEvent, now: number): Result.Result<VideoTask, Refusal> => {
  const table: Partial<Record<TaskEvent["event"], TaskStatus>> = afterwards[record.status]
  const status = table[event.event]
  if (status === undefined) return Result.fail(hasEnded(record.status) ? "ended" : "fenced")
  if ("owner" in event && !isOwner(record, event.owner)) return Result.fail("fenced")
  const changed = apply(record, event, now)
  if (changed === undefined) return Result.fail("fenced")
  return Result.succeed({
    ...changed,
    status,
    updated: now,
    ...(hasEnded(status) ? { ended: now, owner: null } : {})
  })
}

const isOwner = ({ owner }: VideoTask, { claim, worker }: Owner): boolean =>
  owner !== null && owner.worker === worker && owner.claim === claim

const apply = (record: VideoTask, event: TaskEvent, now: number): VideoTask | undefined => {
  const leaseUntil = now + leaseMs
  switch (event.event) {
    case "claimed": {
      if (record.owner !== null && now < record.leaseUntil) return undefined
      const claim = record.claims + 1
      // who lets go of a task is no owner any more
      const losses = record.owner === null ? record.losses : record.losses + 1
      return { ...record, owner: { worker: event.worker, claim }, claims: claim, losses, leaseUntil }
    }
    case "starting":
      return { ...record, providerTask: { provider: event.provider, model: event.model, task: null }, leaseUntil }
    case "started":
      return record.providerTask === null
        ? undefined
        : { ...record, providerTask: { ...record.providerTask, task: event.task }, leaseUntil }
    case "renewed":
      // a task that was begun anew has still come as far as it once had
      return { ...record, progress: Math.max(record.progress, Math.min(99, Math.floor(event.progress))), leaseUntil }
    case "released":
      return { ...record, owner: null, leaseUntil: now }
    case "completed":
      return { ...record, result: event.result, progress: 100 }
    case "failed":
      return { ...record, error: event.error }
    case "cancelled":
      return record
  }
}

/** A task as it is made. */
export const make = (
  options: Pick<VideoTask, "id" | "tenant" | "operation" | "model" | "pool" | "bodyHash" | "traceparent">,
  now: number
): VideoTask => ({
  ...options,
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
const decodeOption = Schema.decodeUnknownOption(codec)

/** `None` for a record that a newer gateway wrote in a way this one does not understand. */
export const decode = (text: string): Option.Option<VideoTask> => decodeOption(text)
