/**
 * Runs the lines of a batch: puts each into the queue of its workload, a few at a time, and follows the log until every line has a
 * result, a client cancels the batch, the batch expires or its file is lost.
 *
 * The worker that runs a batch is its holder. A new holder reads the log and continues with the lines that are not in it. A line that
 * is in the queue twice still has only one result.
 */
import { Clock, Effect, Latch, Option, Result, Stream } from "effect"
import { taskQueueOf } from "../bus/protocol/Subjects.ts"
import type { Operation } from "../contract/Operation.ts"
import type { Owner } from "../contract/Owner.ts"
import type { ModelSnapshot } from "../catalogue/Models.ts"
import type { ClientFile, ClientFiles } from "../files/ClientFiles.ts"
import { backOff } from "../nats/JetStream.ts"
import type { ClaimedTask } from "../tasks/RecordStore.ts"
import type { TaskQueue } from "../tasks/TaskQueue.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { requestOf } from "./BatchLine.ts"
import type { BatchRequest } from "./BatchRecord.ts"
import { type InputLine, linesOf } from "./lines/InputLines.ts"
import { lineId } from "./lines/Line.ts"
import { isOpen, type LineLog } from "./lines/LineLog.ts"
import { resultOf } from "./lines/LineResult.ts"
import { LineTable } from "./LineTable.ts"

export interface RunDependencies {
  readonly files: ClientFiles["Service"]
  readonly log: LineLog
  readonly queue: TaskQueue["Service"]
  readonly models: () => ModelSnapshot
  /** The id of the process on the bus. */
  readonly worker: string
}

export interface Run {
  readonly task: ClaimedTask
  readonly owner: Owner
  readonly batch: BatchRequest
  readonly operation: Operation
  /** `undefined` if the file was deleted, or has expired, while the batch was running. */
  readonly file: ClientFile | undefined
  /** Runs every `tickMs` with the state of the lines. */
  readonly onProgress: (lines: LineTable) => void
}

/** Why a run ends before all lines have a result. `lost`: the rest of the requests cannot be read. */
export type Early = "cancelled" | "expired" | "lost"

export interface Ran {
  readonly lines: LineTable
  readonly early: Early | undefined
}

/** Maximum number of lines of a batch that wait for a worker: few, so that other tasks in the queue wait only briefly. */
const maxWaiting = 16

/** How often the holder checks whether the batch was cancelled or has expired, in milliseconds. */
const tickMs = 200

/** How long a new holder reads the log at most before it submits lines, in milliseconds. */
const readWithinMs = 30_000

/** Maximum number of lines that are stopped concurrently. */
const stopConcurrency = 8

export const run = Effect.fnUntraced(function*(dependencies: RunDependencies, about: Run) {
  const { log } = dependencies
  const { batch, file, owner, task } = about
  const { id, traceparent } = task.current()
  const lines = new LineTable(batch.total)
  /** Opens whenever a line changes. */
  const changed = Latch.makeUnsafe(false)
  const newest = yield* log.newest(owner, id)
  /** Opens when everything that was in the log at the start has been read. */
  const read = Latch.makeUnsafe(newest === 0)
  const closed = Latch.makeUnsafe(false)
  const finished = Latch.makeUnsafe(false)
  const over = Latch.makeUnsafe(false)
  let early: Early | undefined

  yield* log.follow(owner, id).pipe(
    Stream.runForEach((found) =>
      Effect.sync(() => {
        if (found.line === "closed") closed.openUnsafe()
        else lines.set(found.line, found.entry.kind)
        changed.openUnsafe()
        if (found.at >= newest) read.openUnsafe()
        if (lines.isComplete) finished.openUnsafe()
      })
    ),
    Effect.forkScoped
  )

  yield* Effect.gen(function*() {
    about.onProgress(lines)
    if (task.current().stopping !== undefined) early ??= "cancelled"
    else if ((yield* Clock.currentTimeMillis) >= batch.expires) early ??= "expired"
    if (early !== undefined) over.openUnsafe()
    yield* Effect.sleep(tickMs)
  }).pipe(Effect.forever, Effect.forkScoped)

  const hasRoom = () => lines.open < batch.atOnce && lines.count("submitted") < maxWaiting

  /** Waits until a change of a line makes this true. */
  const until = Effect.fnUntraced(function*(isTrue: () => boolean) {
    while (!isTrue()) {
      changed.closeUnsafe()
      if (!isTrue()) yield* changed.await
    }
  })

  const submit = Effect.fnUntraced(function*(line: InputLine) {
    const place = { owner, batch: id, line: line.index }
    const request = requestOf(about.operation, batch, dependencies.models().models, line)
    if (Result.isFailure(request)) {
      const { customId, error } = request.failure
      const at = yield* Clock.currentTimeMillis
      const entry = { kind: "failed", worker: dependencies.worker, job: 0, at, error: error._tag } as const
      yield* log.end(place, entry, resultOf(customId, about.operation.name, error, lineId(place)), 0)
      return
    }
    const { body, customId, model, pool, tokens, workload } = request.success
    const sealed = yield* log.sealJob(place, { customId, tokens }, body)
    // each line has its own trace, because a trace of a whole batch would be too large to display
    yield* dependencies.queue.submit({
      queue: taskQueueOf(workload),
      id: lineId(place),
      operation: about.operation.name,
      tenant: task.current().tenant,
      contentType: "application/json",
      headers: batch.headers,
      traceparent: undefined,
      ...{ model, owner, pool, body: sealed }
    }).pipe(
      // the owner has too many tasks, or NATS is unreachable: the batch waits, at most until it expires
      Effect.retry(backOff),
      Span.around("batch.line", { root: true, kind: "internal" }, (span) => {
        const { parent } = TraceParent.asParent(traceparent)
        if (parent !== undefined) span.addLinks([{ span: parent, attributes: {} }])
      })
    )
  })

  const feedFrom = (file: ClientFile) =>
    linesOf(dependencies.files.read(owner, file)).pipe(
      Stream.runForEach((line) =>
        Effect.gen(function*() {
          if (lines.stateOf(line.index) !== "unknown") return
          yield* until(hasRoom)
          // the log may have reported the line in the meantime
          if (lines.stateOf(line.index) !== "unknown") return
          lines.set(line.index, "submitted")
          yield* submit(line)
        })
      )
    )

  /** Ends a run whose file is lost, after all open lines have ended: they may have been paid for. */
  const endOpen = Effect.gen(function*() {
    yield* until(() => lines.open === 0)
    early ??= "lost"
    over.openUnsafe()
  })

  /** Submits the lines that are not in the log. If there are none, does not read the file, which may have 200 MiB. */
  const feed = Effect.andThen(
    file === undefined ? read.await : Effect.void,
    Effect.suspend(() => {
      if (lines.count("unknown") === 0) return Effect.void
      return file === undefined ? endOpen : Effect.catchTag(feedFrom(file), "FileDamaged", () => endOpen)
    })
  )

  const whole = Effect.andThen(Effect.timeoutOption(read.await, readWithinMs), Effect.andThen(feed, finished.await))
  yield* lines.isComplete ? Effect.void : Effect.raceFirst(whole, over.await)
  yield* log.close(owner, id)
  // from here on no line calls a provider for the first time, and all lines that have begun are known
  yield* closed.await
  const stop = Effect.fnUntraced(function*(line: number) {
    const place = { owner, batch: id, line }
    for (;;) {
      const found = Option.getOrUndefined(yield* log.read(place))
      if (found !== undefined && !isOpen(found.entry.kind)) return lines.set(line, found.entry.kind)
      const at = yield* Clock.currentTimeMillis
      const entry = found?.entry ?? { worker: dependencies.worker, job: 0, at }
      const written = yield* log.write(place, { ...entry, kind: "stopped" }, found?.revision ?? 0)
      if (Option.isSome(written)) return lines.set(line, "stopped")
    }
  })
  yield* Effect.forEach(lines.linesIn(["submitted", "taken", "begun"]), stop, {
    concurrency: stopConcurrency,
    discard: true
  })
  about.onProgress(lines)
  // the last results may have arrived after the batch was cancelled or had expired: they count
  return { lines, early: lines.isComplete ? undefined : early } satisfies Ran
}, Effect.scoped)
