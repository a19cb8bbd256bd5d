/**
 * Performs the lines of batches in a worker, like any other requests, and writes the results into the log.
 *
 * A line that has not begun may be performed again. A line that has begun fails if its worker is lost: it may have been paid for.
 */
import { Cause, Clock, Effect, Option } from "effect"
import { InternalError, type JobError, WorkerLost } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { PulledJob } from "../../bus/worker/JobSource.ts"
import { ackWaitMs, heartbeatMs } from "../../bus/protocol/Timings.ts"
import type { Spend } from "../../limits/Holds.ts"
import type { JetStreamFailed } from "../../nats/JetStream.ts"
import { TaskRefused } from "../../tasks/RecordStore.ts"
import { deferralMs } from "../../tasks/answers/AnswerWork.ts"
import type { OtherJobs, Tools } from "../../tasks/answers/AnswerWorker.ts"
import type { AnswerHead } from "../../tasks/answers/Page.ts"
import * as StoredAnswer from "../../tasks/answers/StoredAnswer.ts"
import { isInterruption } from "../../tasks/TaskLife.ts"
import type { Settlement } from "../../tasks/TaskState.ts"
import { eventOf, storeEvent } from "../../tasks/TaskUsage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import * as TraceParent from "../../telemetry/TraceParent.ts"
import type { Endpoint } from "../../worker/Meter.ts"
import { isLineId, type LinePlace, placeOf } from "./Line.ts"
import { resultOf } from "./LineResult.ts"
import * as LineLog from "./LineLog.ts"

/** How often a worker checks whether a line is still wanted, in milliseconds: the time until a cancellation is noticed. */
const lookEveryMs = 1_000

/** When to look again at a line that another worker has, in milliseconds: after that worker's next heartbeat. */
const othersMs = ackWaitMs + heartbeatMs

interface Page {
  readonly number: number
  readonly bytes: Uint8Array
}

const make = ({ holds, dependencies, worker }: Tools, log: LineLog.LineLog) => {
  const cost = dependencies.performer.costInBatch
  const answers = StoredAnswer.make({ ...dependencies, cost })

  /** Writes the usage of a line whose worker may have been lost before it wrote it. Events with the same id count once. */
  const meter = (job: PulledJob, { at, error, kind, model, provider, usage }: LineLog.Entry) => {
    const event = eventOf(cost, {
      id: job.id,
      tenant: job.tenant,
      operation: job.operation,
      model: job.model,
      ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent }),
      status: kind === "completed" ? "completed" : "failed",
      created: at,
      updated: at,
      ended: at,
      error: error === undefined ? null : { _tag: error },
      providerTask: provider === undefined ? null : { provider, model: model ?? job.model, task: null }
    }, usage)
    return event === undefined ? Effect.void : storeEvent(dependencies.log, dependencies.workload, event)
  }

  const end: LineLog.LineLog["end"] = (place, entry, result, revision) =>
    Effect.tap(
      log.end(place, entry, result, revision),
      (isFirst) => Effect.sync(() => isFirst ? Metrics.update(Metrics.batchLines(entry.kind), 1) : undefined)
    )

  /** Settles a job whose line is begun or has ended: fails a line whose worker is lost, or writes the usage again. */
  const settle = Effect.fnUntraced(function*(
    place: LinePlace,
    customId: string,
    job: PulledJob,
    { entry, revision }: LineLog.Found
  ) {
    if (entry.kind === "begun") {
      // for a copy of the job, or a first delivery, do nothing: JetStream redelivers the original job if its worker is lost
      if (entry.job !== job.publishedAt || job.delivery === 1) return
      const error = new WorkerLost()
      const ended: LineLog.Entry = { ...entry, kind: "failed", error: error._tag }
      if (yield* end(place, ended, resultOf(customId, job.operation, error, job.id), revision)) {
        yield* meter(job, ended)
      }
      return
    }
    // not for a copy: NATS drops a repeated event only for a while, and the copy may come later
    if (job.delivery > 1 && entry.job === job.publishedAt) yield* meter(job, entry)
  })

  /**
   * Gives up a line that this worker may not write. Either the line has ended, or another worker has it, which was silent until the
   * job was delivered here, or an earlier write of this worker was stored although it seemed to fail. If the line is still open, the
   * job is delivered again later, since it may be the only one left.
   */
  const leave = Effect.fnUntraced(function*(place: LinePlace): Effect.fn.Return<Settlement, JetStreamFailed> {
    if (yield* log.isClosed(place.owner, place.batch)) return "done"
    const found = yield* log.read(place)
    return Option.exists(found, ({ entry }) => LineLog.isOpen(entry.kind)) ? { afterMs: othersMs } : "done"
  })

  const perform = Effect.fnUntraced(function*(job: PulledJob): Effect.fn.Return<Settlement, JetStreamFailed> {
    const place = placeOf(job.id, job.owner)
    if (place === undefined || (yield* log.isClosed(place.owner, place.batch))) return "done"
    const request = Option.getOrUndefined(yield* log.openJob(place, job.body ?? new Uint8Array(0)))
    const customId = request?.about.customId ?? ""
    const found = Option.getOrUndefined(yield* log.read(place))
    // this is a copy; the job that has taken the line is redelivered if its worker is lost
    if (found?.entry.kind === "taken" && found.entry.job !== job.publishedAt) return "done"
    if (found !== undefined && found.entry.kind !== "taken") {
      return yield* Effect.as(settle(place, customId, job, found), "done" as const)
    }
    const attempt = new Attempt(place, customId, job, { worker, at: yield* Clock.currentTimeMillis })
    attempt.revision = found?.revision ?? 0
    if (request === undefined) return yield* fail(attempt, new InternalError())
    const work = { task: job.id, key: job.tenant, model: job.model, tokens: request.about.tokens, inBatch: true }
    const answered = holds.around(work, (spend) => answer(attempt, request.bytes, spend)).pipe(
      // written only after the units are returned, because the result lets the holder submit the next line
      Effect.flatMap(({ entry, result }) => endOrLeave(attempt, entry, result)),
      Effect.catchTags({
        NotNow: (error) => Effect.map(deferralMs(error, job.publishedAt), (afterMs): Settlement => ({ afterMs })),
        TaskRefused: () => leave(place),
        TaskDeferred: ({ retryAfterMs }) => Effect.succeed<Settlement>({ afterMs: retryAfterMs }),
        JetStreamFailed: (error) => Effect.fail(error)
      }),
      Effect.catchIf((error) => !isInterruption(error), (error) => fail(attempt, error as JobError))
    )
    const settlement = yield* answered
    if (settlement === "done") yield* answers.metered(job.id)
    return settlement
  })

  const fail = (attempt: Attempt, error: JobError): Effect.Effect<Settlement, JetStreamFailed> => {
    const { customId, job } = attempt
    const result = resultOf(customId, job.operation, error, job.id)
    return endOrLeave(attempt, attempt.entry("failed", { error: error._tag }), result)
  }

  const endOrLeave = ({ place, revision }: Attempt, entry: LineLog.Entry, result: LineLog.Result) =>
    Effect.flatMap(
      end(place, entry, result, revision),
      (isFirst) => isFirst ? Effect.succeed<Settlement>("done") : leave(place)
    )

  const answer = Effect.fnUntraced(function*(attempt: Attempt, body: Uint8Array, spend: Spend) {
    const { job, place, taker } = attempt
    const refuse = (refusal: TaskRefused["refusal"]) => {
      attempt.refusal = refusal
      return new TaskRefused({ refusal })
    }
    /** The latest page, which becomes part of the log entry if no other follows. */
    let last: Page | undefined
    let head: AnswerHead | undefined

    const write = Effect.fnUntraced(function*(kind: "taken" | "begun") {
      attempt.isWriting = true
      const written = yield* log.write(place, attempt.entry(kind), attempt.revision)
      if (Option.isNone(written)) return yield* refuse("fenced")
      attempt.revision = written.value
      attempt.isWriting = false
    })

    /** To be checked after a write: the holder closes the log before it looks which lines are taken or have begun. */
    const checkOpen = Effect.gen(function*() {
      if (yield* log.isClosed(place.owner, place.batch)) return yield* refuse("ended")
    })

    const commit = Effect.fnUntraced(function*(endpoint: Endpoint) {
      attempt.endpoint = endpoint
      if (attempt.isBegun) return
      yield* write("begun")
      attempt.isBegun = true
      yield* checkOpen
    })

    const retract = Effect.gen(function*() {
      yield* write("taken")
      attempt.isBegun = false
    })

    /** Fails if the holder has ended the line, or another worker has it. */
    const watch = Effect.gen(function*() {
      yield* Effect.sleep(lookEveryMs)
      const before = attempt.revision
      const found = Option.getOrUndefined(yield* log.read(place))
      const isClosed = found === undefined && (yield* log.isClosed(place.owner, place.batch))
      if (attempt.isWriting || attempt.revision !== before) return
      if (isClosed || (found?.revision ?? 0) !== before) {
        return yield* refuse(found !== undefined && LineLog.isOpen(found.entry.kind) ? "fenced" : "ended")
      }
    })

    // tells the holder that a worker has the line: a repeatable call never writes `begun`
    if (dependencies.performer.isIdempotent(job.model)) {
      yield* write("taken")
      yield* checkOpen
    }
    const answered = answers.answer({
      job,
      body,
      spend,
      onCall: (endpoint) => {
        attempt.endpoint = endpoint
      },
      claim: { refusal: () => attempt.refusal, isCommitted: () => attempt.isBegun, commit, retract },
      append: (number, about, bytes) =>
        Effect.suspend(() => {
          const before = last
          last = { number, bytes }
          head ??= about.head
          return before === undefined ? Effect.succeed(true) : log.append(place, taker, before.number, before.bytes)
        })
    })
    const { usage } = yield* Effect.raceFirst(answered, Effect.forever(watch))
    const status = head?.status ?? 200
    const kind = status < 300 ? "completed" : "failed"
    const entry = attempt.entry(kind, {
      ...(usage === undefined ? {} : { usage }),
      ...(last === undefined || last.number === 0 ? {} : { pages: last.number })
    })
    const about = { customId: attempt.customId, status }
    return { entry, result: { about, bytes: last?.bytes ?? new Uint8Array(0) } }
  })

  return (job: PulledJob): Effect.Effect<Settlement> =>
    Effect.suspend(() => perform(job)).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.as(
            Effect.logWarning("line of a batch returned to its queue", { id: job.id }, cause),
            "later" as const
          )
      ),
      Span.around(
        `process ${job.subject}`,
        { kind: "consumer", ...TraceParent.asParent(job.traceparent) },
        Attributes.pulled(job)
      )
    )
}

/** One worker's attempt at a line. */
class Attempt {
  readonly place: LinePlace
  readonly customId: string
  readonly job: PulledJob
  readonly taker: LineLog.Taker
  /** The revision of the line's last write; 0 if there is none. */
  revision = 0
  isWriting = false
  isBegun = false
  refusal: TaskRefused["refusal"] | undefined
  endpoint: Endpoint | undefined

  constructor(place: LinePlace, customId: string, job: PulledJob, taker: LineLog.Taker) {
    this.place = place
    this.customId = customId
    this.job = job
    this.taker = taker
  }

  entry(
    kind: LineLog.Kind,
    more: { readonly usage?: Usage; readonly pages?: number; readonly error?: string } = {}
  ): LineLog.Entry {
    return {
      kind,
      ...this.taker,
      job: this.job.publishedAt,
      ...(this.endpoint === undefined ? {} : { provider: this.endpoint.name, model: this.endpoint.model }),
      ...more
    }
  }
}

/** The handler of batch lines for workers that serve tasks. */
export const lines: OtherJobs = {
  isOne: isLineId,
  open: (tools) => Effect.map(LineLog.open(tools.patience), (log) => make(tools, log))
}
