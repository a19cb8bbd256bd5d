/**
 * Performs the task of a batch, in the service for batches: checks the file of requests, runs the lines and assembles the results.
 * The worker that has the task is the batch's holder. If it is lost, another one continues from the record and the log of lines.
 */
import { Clock, Effect, Option, Stream } from "effect"
import type { PulledJob } from "../bus/worker/JobSource.ts"
import { InternalError } from "../contract/JobError.ts"
import { operationNamed } from "../contract/operations/operations.ts"
import type { Owner } from "../contract/Owner.ts"
import { type ClientFile, newId } from "../files/ClientFiles.ts"
import { JetStreamFailed } from "../nats/JetStream.ts"
import { ownerOf } from "../tasks/answers/AnswerWork.ts"
import { recordKey } from "../tasks/answers/TaskPages.ts"
import type { ClaimedTask } from "../tasks/RecordStore.ts"
import type { Failure, Report, TaskWork } from "../tasks/TaskLife.ts"
import type { TaskRecord } from "../tasks/TaskRecord.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { Announcer } from "../webhooks/Announcer.ts"
import * as Assembly from "./Assembly.ts"
import { mistakeOf } from "./BatchLine.ts"
import {
  type BatchProgress,
  type BatchRequest,
  type BatchResult,
  decodeRequest,
  ends,
  type Mistake
} from "./BatchRecord.ts"
import { type Ran, run, type RunDependencies } from "./BatchRun.ts"
import { batchOf } from "./BatchState.ts"
import { linesOf } from "./lines/InputLines.ts"
import type { LineTable } from "./LineTable.ts"

/** Maximum number of mistakes that a batch lists. */
const maxMistakes = 100

/**
 * After how many losses of holders in a row, without progress in between, a batch fails. More than for other tasks, because its
 * requests may have been paid for, and cannot have killed the holder: they do not run in it.
 */
const maxLosses = 20

export interface Dependencies extends RunDependencies {
  readonly announcer: Announcer
}

/** Failures of the storage can be retried; damaged content cannot be repaired. */
const whileStored = (error: JetStreamFailed | { readonly _tag: string }): JetStreamFailed | InternalError =>
  error instanceof JetStreamFailed ? error : new InternalError()

const gone: Mistake = {
  code: "file_not_found",
  message: "The file of requests was deleted, or has expired.",
  line: null,
  param: "input_file_id"
}

const damaged: Mistake = { ...gone, code: "file_damaged", message: "The content of the file of requests is damaged." }

export const make = (dependencies: Dependencies): TaskWork => {
  const { files, log } = dependencies
  // counters start at 0, so that the first increase is visible
  for (const end of ends) Metrics.update(Metrics.batches(end), 0)

  const validate = (owner: Owner, batch: BatchRequest, file: ClientFile) =>
    linesOf(files.read(owner, file)).pipe(
      Stream.map((line) => mistakeOf(batch, line)),
      Stream.filter((mistake) => mistake !== undefined),
      Stream.take(maxMistakes),
      Stream.runCollect
    )

  const perform = Effect.fnUntraced(function*(
    task: ClaimedTask,
    report: Report,
    job: PulledJob
  ): Effect.fn.Return<BatchResult, Failure> {
    const owner = yield* ownerOf(job)
    const record = task.current()
    const batch = Option.getOrUndefined(decodeRequest(record.details))
    const operation = operationNamed(record.operation)
    const known = Option.getOrUndefined(batchOf(record))
    if (batch === undefined || operation === undefined || known === undefined) return yield* new InternalError()

    let progress: BatchProgress = known.progress
    const update = (change: Partial<BatchProgress>) => {
      progress = { ...progress, ...change }
      report((progress.completed + progress.failed) / Math.max(1, batch.total) * 99, progress)
    }
    /** Saves a change of the progress, and returns when the record has it. */
    const save = (change: Partial<BatchProgress>) => {
      update(change)
      return task.record({ event: "renewed", progress: 0, state: progress })
    }
    const failed = (mistakes: ReadonlyArray<Mistake>): BatchResult => ({ end: "failed", progress, mistakes })

    const file = Option.getOrUndefined(yield* files.find(owner, batch.input))
    if (progress.phase === "validating") {
      if (file === undefined) return failed([gone])
      const mistakes = yield* Effect.catchTag(
        validate(owner, batch, file),
        "FileDamaged",
        () => Effect.succeed([damaged])
      )
      if (mistakes.length > 0) return failed(mistakes)
      yield* save({ phase: "in_progress", began: yield* Clock.currentTimeMillis })
    }

    const onProgress = (lines: LineTable) => {
      const [completed, failed] = [lines.count("completed"), lines.count("failed")]
      if (completed > progress.completed || failed > progress.failed) update({ completed, failed })
    }
    const ran = yield* run(dependencies, { task, owner, batch, operation, file, onProgress })
    const rest = batch.total - ran.lines.ended
    yield* save({
      phase: "finalizing",
      finalizing: progress.finalizing ?? (yield* Clock.currentTimeMillis),
      completed: ran.lines.count("completed"),
      failed: ran.lines.count("failed") + rest,
      unfinished: rest
    })
    yield* assemble(owner, record, file, ran, () => progress, save)
    if (ran.early === "lost") return failed([file === undefined ? gone : damaged])
    return { end: ran.early ?? "completed", progress, mistakes: [] }
  })

  /** Writes the files of results, except those that an earlier holder has already written. */
  const assemble = Effect.fnUntraced(function*(
    owner: Owner,
    { id }: TaskRecord,
    file: ClientFile | undefined,
    ran: Ran,
    progress: () => BatchProgress,
    save: (change: Partial<BatchProgress>) => Effect.Effect<unknown, Failure>
  ) {
    const input = file === undefined ? undefined : () => linesOf(files.read(owner, file))
    const parts = Assembly.partsOf({ log, owner, id, ran, input })
    for (const name of ["output", "errors"] as const) {
      const content = parts[name]
      const stored = progress()[name]
      if (content === undefined || (stored !== null && Option.isSome(yield* files.find(owner, stored)))) continue
      const file = newId(yield* Clock.currentTimeMillis)
      // saves the file's id before the file exists, so that another holder does not make a second file
      yield* save({ [name]: file })
      const about = {
        id: file,
        purpose: "batch_output",
        filename: `${id}_${name === "output" ? "output" : "error"}.jsonl`
      } as const
      yield* Effect.mapError(files.create(owner, about, content), whileStored)
    }
  })

  return {
    perform,
    // nothing to stop: the lines of a deleted batch stop when their log does
    stop: () => Effect.void,
    keyOf: ({ id, owner }) => owner === undefined ? id : recordKey(owner, id),
    usageOf: () => undefined,
    maxLosses,
    announce: Effect.fnUntraced(function*(task, { owner }) {
      if (owner === undefined) return
      yield* log.clear(owner, task.id)
      const batch = Option.getOrUndefined(batchOf(task))
      if (batch === undefined) return
      Metrics.update(Metrics.batches(batch.status), 1)
      yield* dependencies.announcer.announce(owner.id, {
        id: `evt_${task.id.slice(task.id.indexOf("_") + 1)}`,
        type: `batch.${batch.status}`,
        subject: task.id,
        at: task.ended ?? task.updated
      })
    })
  }
}
