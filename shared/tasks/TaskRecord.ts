/**
 * The record of a task: its format and its ids. `TaskState.ts` changes records, `RecordStore.ts` stores them.
 *
 * A record is one piece of work, with its own job, its own call to a provider and its own usage. A request for several results
 * makes several records, which clients see as one task under the id of the first.
 */
import { Effect, type Option, Schema, Struct } from "effect"
import { JobError } from "../contract/JobError.ts"
import { TaskStatus, workloads } from "../contract/Operation.ts"

/** The worker that has the task: its id on the bus and the number of its claim. */
const Holder = Schema.Struct({ worker: Schema.String, claim: Schema.Int })
export type Holder = typeof Holder.Type

/** A provider's name in the catalogue, and the model's name at the provider. */
const endpoint = { provider: Schema.String, model: Schema.String }

/** The call to a provider that does the work. */
const ProviderTask = Schema.Struct({
  ...endpoint,
  /** The provider's reference to the work, which only its engine can read. `null` until the provider has answered. */
  task: Schema.Unknown
})

/** What a worker needs to know about a request whose answer is stored. Videos do not have it. */
const AnswerRequest = Schema.Struct({
  workload: Schema.Literals(workloads),
  contentType: Schema.String,
  /** Further request headers that the worker needs. */
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** How many tokens the work is expected to use. */
  tokens: Schema.Finite,
  /** How many pages hold the body. */
  pages: Schema.Int,
  /** The size of the body. Absent in records of older gateways. */
  bytes: Schema.optionalKey(Schema.Int),
  /** Whether the request asks for a stream of events. */
  streams: Schema.Boolean
})
export type AnswerRequest = typeof AnswerRequest.Type

export const TaskRecord = Schema.Struct({
  /** `task_` and 32 base62 characters; the further results of a request add `-` and their index. */
  id: Schema.String,
  /** The number of results of the request, and which of them this one is, from 0. Absent in records of older gateways. */
  count: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
  index: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  tenant: Schema.String,
  /** The owner's id, for tasks whose records are not sealed for the owner. Absent in records of older gateways. */
  ownerId: Schema.optionalKey(Schema.String),
  operation: Schema.String,
  model: Schema.String,
  pool: Schema.String,
  /** SHA-256 of the request's body, part of the name of the stored object. */
  bodyHash: Schema.String,
  /** The span of the request that created the task; later spans belong to its trace or link to it. */
  traceparent: Schema.optionalKey(Schema.String),
  status: TaskStatus,
  /** Percent. */
  progress: Schema.Int,
  /** Stored in the field `owner`, the name that older gateways use. */
  holder: Schema.NullOr(Holder),
  /** The number of the last claim; 0 before the first. */
  claims: Schema.Int,
  /**
   * How many claims in a row have expired without a release or a new `state`, because the worker died or froze. Absent in records
   * of older gateways.
   */
  losses: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** When the holder's claim expires, in epoch milliseconds. */
  leaseUntil: Schema.Finite,
  /**
   * Set before the call to the provider, so that a later worker knows that it may have been made. `null` again once the provider has
   * declined it.
   */
  providerTask: Schema.NullOr(ProviderTask),
  /** Where the last declined call was made. Absent in records of older gateways. */
  declinedBy: Schema.optionalKey(Schema.Struct(endpoint)),
  request: Schema.optionalKey(AnswerRequest),
  /** Where the task's idempotency key is stored, if it has one; see `KeyBindings.ts`. */
  binding: Schema.optionalKey(Schema.String),
  /** Set by the workload's own code: about the request, and about the work while it runs. */
  details: Schema.optionalKey(Schema.Unknown),
  state: Schema.optionalKey(Schema.Unknown),
  /** When a client asked to end the work early, in epoch milliseconds. */
  stopping: Schema.optionalKey(Schema.Finite),
  /** When the queue drops the task's job, in epoch milliseconds. Default: `taskAgeMs` after the task's creation. */
  expires: Schema.optionalKey(Schema.Finite),
  /** The kind of event that announces the end to the owner's webhook. Absent if the end is not announced. */
  announcedAs: Schema.optionalKey(Schema.Literals(["response", "task", "batch"])),
  /** Set by the operation's own code: about the finished work. */
  result: Schema.Unknown,
  error: Schema.NullOr(JobError),
  /** Epoch milliseconds. */
  created: Schema.Finite,
  updated: Schema.Finite,
  ended: Schema.NullOr(Schema.Finite)
}).pipe(Schema.encodeKeys({ holder: "owner" }))
export type TaskRecord = typeof TaskRecord.Type

const codec = Schema.fromJsonString(TaskRecord)
export const encode = Schema.encodeSync(codec)

/** `None` for a record that a newer gateway has written in an unknown format. */
export const decode: (text: string) => Option.Option<TaskRecord> = Schema.decodeUnknownOption(codec)

const given = ["id", "tenant", "operation", "model", "pool", "bodyHash"] as const
const optional = ["ownerId", "traceparent", "request", "binding", "details", "expires", "announcedAs"] as const

export interface NewTask
  extends Pick<TaskRecord, typeof given[number]>, Partial<Pick<TaskRecord, "count" | "index" | typeof optional[number]>>
{}

/** A new task at `now` in epoch milliseconds. */
export const make = (task: NewTask, now: number): TaskRecord => ({
  ...Struct.pick(task, [...given, ...optional.filter((field) => task[field] !== undefined)]),
  count: task.count ?? 1,
  index: task.index ?? 0,
  status: "queued",
  progress: 0,
  holder: null,
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

/** Whether both records are of one request. Either may have been read from the store. */
export const isSameRequest = (one: TaskRecord, other: TaskRecord): boolean =>
  one.created === other.created && one.bodyHash === other.bodyHash && one.traceparent === other.traceparent

/** The id of the first record of a request. */
export const firstIdOf = (id: string): string => id.split("-", 1)[0] ?? id

/** The id of the record with this index, of the same request. */
export const siblingId = (id: string, index: number): string =>
  index === 0 ? firstIdOf(id) : `${firstIdOf(id)}-${index}`

/** New records for the other results of the request. */
export const siblingsOf = (first: TaskRecord, now: number): ReadonlyArray<TaskRecord> =>
  Array.from({ length: first.count - 1 }, (_, before) => {
    const index = before + 1
    return make({ ...first, id: siblingId(first.id, index), index }, now)
  })
