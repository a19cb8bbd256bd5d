/** Derives the state of a batch from the record of its task, as a pure function; the README has the diagram. */
import { Option } from "effect"
import type { JobError } from "../contract/JobError.ts"
import { type Batch, type BatchStatus, decodeProgress, decodeRequest, decodeResult, noProgress } from "./BatchRecord.ts"
import type { TaskRecord } from "../tasks/TaskRecord.ts"

const mistakeOf = ({ _tag, message }: JobError) => ({ code: _tag, message, line: null, param: null })

/** The batch of a task; `None` if the record is in the format of a newer gateway. */
export const batchOf = (task: TaskRecord): Option.Option<Batch> =>
  Option.map(decodeRequest(task.details), (request): Batch => {
    const result = Option.getOrUndefined(decodeResult(task.result))
    const progress = result?.progress ?? Option.getOrElse(decodeProgress(task.state), () => noProgress)
    const running: BatchStatus = task.stopping === undefined ? progress.phase : "cancelling"
    const statuses = {
      queued: running,
      in_progress: running,
      completed: result?.end ?? "failed",
      failed: "failed",
      cancelled: "cancelled"
    } as const
    return {
      task,
      request,
      progress,
      status: statuses[task.status],
      mistakes: result?.mistakes ?? (task.error === null ? [] : [mistakeOf(task.error)])
    }
  })
