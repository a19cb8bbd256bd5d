/**
 * Idempotency keys: each stands for the task of the first request with it, for a day. It is free again if that request was refused,
 * failed before a provider was called, or was deleted.
 */
import { Clock, Effect, Option, type Schedule, Schema } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { Owner } from "../../contract/Owner.ts"
import type { JetStreamFailed } from "../../nats/JetStream.ts"
import type { Bucket } from "../../nats/KeyValue.ts"
import { digest, ownerToken } from "../../records/OwnerToken.ts"
import type { RecordStore } from "../RecordStore.ts"
import type { TaskRecord } from "../TaskRecord.ts"
import { hasEnded } from "../TaskState.ts"
import { OtherBody } from "../Tasks.ts"
import { recordKey } from "./TaskPages.ts"

/** A request with an idempotency key. */
export interface KeyedRequest {
  readonly operation: string
  readonly key: string
  /** Of everything that the answer depends on. */
  readonly bodyHash: string
}

/** How long a key stands for its task, in milliseconds. */
const boundForMs = 24 * 60 * 60_000

const Binding = Schema.Struct({
  /** The task's id. */
  id: Schema.String,
  bodyHash: Schema.String,
  /** Epoch milliseconds. */
  at: Schema.Finite
})
const codec = Schema.fromJsonString(Binding)
const encode = Schema.encodeSync(codec)
const decode = Schema.decodeUnknownOption(codec)

/** Refusals by ingress's rules or by a provider: nothing was made, and nothing is to be paid. */
const refusals: ReadonlySet<JobError["_tag"]> = new Set([
  "InvalidRequest",
  "ModelNotFound",
  "ReferenceNotFound",
  "ProviderRejected",
  "ProviderRateLimited"
])

const cameToNothing = ({ error, providerTask, status }: TaskRecord): boolean =>
  hasEnded(status) && status !== "completed" && (providerTask === null || (error !== null && refusals.has(error._tag)))

/** The key of a binding in the bucket. */
export const bindingOf = (owner: Owner, { key, operation }: KeyedRequest): string =>
  `${ownerToken(owner)}.key.${digest(owner.salt, operation, key)}`

export interface TaskKeys {
  /** The task that the request is for. `None` if its key is free. */
  readonly find: (
    owner: Owner,
    request: KeyedRequest
  ) => Effect.Effect<Option.Option<TaskRecord>, OtherBody | JetStreamFailed>
  /** Binds a free key to the task of this id. Returns the id that the key stands for now. */
  readonly bind: (owner: Owner, request: KeyedRequest, id: string) => Effect.Effect<string, OtherBody | JetStreamFailed>
  /** Frees the key of this binding, unless it stands for another task by now. */
  readonly free: (binding: string, id: string) => Effect.Effect<void, JetStreamFailed>
}

export const make = (
  bucket: Bucket,
  records: Pick<RecordStore, "find">,
  patience: Schedule.Schedule<unknown>
): TaskKeys => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)

  /** What is stored for a key, and the task that it stands for. A binding without a task is about to get it. */
  const look = Effect.fnUntraced(function*(owner: Owner, request: KeyedRequest) {
    const found = Option.getOrUndefined(yield* again(bucket.getRevision(bindingOf(owner, request))))
    const binding = Option.getOrUndefined(Option.flatMap(Option.fromUndefinedOr(found?.value), decode))
    const isBound = binding !== undefined && (yield* Clock.currentTimeMillis) < binding.at + boundForMs
    const task = isBound ? yield* records.find(recordKey(owner, binding.id)) : Option.none()
    if (!isBound || Option.exists(task, cameToNothing)) {
      return { id: undefined, revision: found?.revision, task: Option.none() }
    }
    if (binding.bodyHash !== request.bodyHash) return yield* new OtherBody()
    return { id: binding.id, revision: found?.revision, task }
  })

  return {
    find: (owner, request) => Effect.map(look(owner, request), ({ task }) => task),
    bind: Effect.fnUntraced(function*(owner, request, id) {
      const place = bindingOf(owner, request)
      const text = encode({ id, bodyHash: request.bodyHash, at: yield* Clock.currentTimeMillis })
      for (;;) {
        const found = yield* look(owner, request)
        if (found.id !== undefined) return found.id
        const isWritten = found.revision === undefined
          ? yield* again(bucket.create(place, text))
          : Option.isSome(yield* again(bucket.update(place, text, found.revision)))
        if (isWritten) return id
      }
    }),
    free: Effect.fnUntraced(function*(place, id) {
      const found = Option.getOrUndefined(yield* again(bucket.getRevision(place)))
      const binding = Option.getOrUndefined(decode(found?.value))
      if (found === undefined || binding?.id !== id) return
      // a deletion could hit the binding to a later task
      yield* again(bucket.update(place, encode({ ...binding, at: -boundForMs }), found.revision))
    })
  }
}
