/**
 * Stores new tasks and submits them to their queue, and submits tasks again that may not be in it: their ingress may have died before
 * it submitted them.
 */
import { Clock, Effect } from "effect"
import { orUnavailable, type QueueFull, type Unavailable } from "../contract/JobError.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { RecordStore } from "./RecordStore.ts"
import { isSameRequest, type TaskRecord } from "./TaskRecord.ts"
import { hasEnded } from "./TaskState.ts"

/** Puts a task into its queue. */
export type Submit = (task: TaskRecord) => Effect.Effect<void, QueueFull | Unavailable>

export interface Place {
  readonly records: Pick<RecordStore, "create">
  readonly submit: Submit
  /** Removes everything that is stored of a task. */
  readonly remove: (task: TaskRecord) => Effect.Effect<unknown, JetStreamFailed>
}

/** At what age in milliseconds a task is submitted again when a client polls it. The queue drops duplicates up to the upper bound. */
const polledMs = { from: 10_000, until: 100_000 }

/**
 * Stores and submits a task, or returns the one that another request has stored under the key. A task that cannot be submitted is
 * removed, because the client does not learn of it. Neither a client that disconnects nor a shutdown interrupts this halfway; each step
 * has a deadline.
 */
export const create = ({ records, remove, submit }: Place, key: string, task: TaskRecord) =>
  Effect.uninterruptible(Effect.gen(function*() {
    const stored = yield* orUnavailable(records.create(key, task))
    if (!isSameRequest(stored, task)) {
      yield* again(submit, stored)
      return { task: stored, isNew: false }
    }
    yield* Effect.onError(submit(stored), () => Effect.ignore(remove(stored)))
    return { task: stored, isNew: true }
  }))

/** Submits a task again, unless a worker has claimed it. A copy in the queue ends with its task. */
export const again = (submit: Submit, task: TaskRecord): Effect.Effect<void> =>
  task.claims > 0 || hasEnded(task.status) ? Effect.void : Effect.ignore(submit(task))

/** Submits a task again in the background while the queue drops duplicates. For polls, which are frequent. */
export const againWhenPolled = Effect.fnUntraced(function*(submit: Submit, task: TaskRecord) {
  const age = (yield* Clock.currentTimeMillis) - task.created
  if (age > polledMs.from && age < polledMs.until) yield* Effect.forkDetach(again(submit, task))
})
