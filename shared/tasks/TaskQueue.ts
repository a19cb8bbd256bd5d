/**
 * Queues of durable tasks. Ingress submits a task once; the queue redelivers it until a worker has ended it. The task's own
 * record (`TaskRecord.ts`) holds its state and result.
 */
import { Clock, Context, Effect, Exit, type Fiber, Layer, Metric, type Scope } from "effect"
import { QueueFull, Unavailable } from "../contract/JobError.ts"
import type { Owner } from "../contract/Owner.ts"
import { ownerToken } from "../records/OwnerToken.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { encodeJob } from "../bus/protocol/JobMessage.ts"
import type { PulledJob } from "../bus/worker/JobSource.ts"
import { JobSource } from "../bus/worker/JobSource.ts"
import { attempt, JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import * as Timings from "../bus/protocol/Timings.ts"
import { Nats } from "../nats/Nats.ts"
import * as PoolServer from "../bus/worker/PoolServer.ts"
import { verdictIn } from "../bus/ingress/StreamRequests.ts"
import { every, monotonicMs } from "../bounds/MonotonicClock.ts"
import * as Subjects from "../bus/protocol/Subjects.ts"
import type { Settlement } from "./TaskState.ts"

/** The data of a task that its queue stores. */
export interface TaskSubmission {
  readonly queue: Subjects.TaskQueueName
  readonly pool: string
  readonly id: string
  readonly operation: string
  readonly model: string
  readonly tenant: string
  /** The owner of the task. Absent for videos, whose queue has a protocol version without owners. */
  readonly owner?: Owner | undefined
  readonly contentType?: string
  /** The request's body, at most `inlineBodyBytes`. Absent if the worker reads the request elsewhere. */
  readonly body?: Uint8Array
  /** Further request headers that the worker needs. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** From the request that created the task. */
  readonly traceparent: string | undefined
}

export interface ServeTasksOptions extends PoolServer.PoolOptions {
  /** Interrupted when the process ends; the task returns to the queue and another worker continues it. */
  readonly run: (task: PulledJob) => Effect.Effect<Settlement>
}

/** How long a submission is retried, in milliseconds, and how long each try may take. */
const submitWithinMs = 10_000
const answerWithinMs = 2_000

/** After how long a task that could not run is redelivered, in milliseconds. */
const laterMs = 2_000

export class TaskQueue extends Context.Service<TaskQueue, {
  /**
   * Puts a task into its queue, and returns when JetStream has stored it on disk. May be repeated: JetStream drops duplicates
   * within two minutes.
   */
  readonly submit: (task: TaskSubmission) => Effect.Effect<void, QueueFull | Unavailable>
  /** Serves a pool until the scope closes. The first pull waits until the queue exists. */
  readonly serve: (options: ServeTasksOptions) => Effect.Effect<PoolServer.Serving, never, Scope.Scope>
}>()("shared/tasks/TaskQueue") {
  static readonly layer = Layer.effect(
    TaskQueue,
    Effect.gen(function*() {
      const nats = yield* Nats
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<Nats>()
      return TaskQueue.of({
        submit: (task) => {
          const subject = subjectOf(task)
          return Effect.flatMap(TraceParent.current, (traceparent) => publish(nats, { ...task, traceparent })).pipe(
            Effect.tapErrorTag("JetStreamFailed", () => Metric.update(Metrics.jetStreamErrors("submit"), 1)),
            Effect.retry(whileJetStreamFails),
            Effect.timeoutOrElse({ duration: submitWithinMs, orElse: () => Effect.fail(unavailable) }),
            Effect.catchTag("JetStreamFailed", () => Effect.fail(unavailable)),
            Span.around(
              `publish ${subject}`,
              { kind: "producer", ...TraceParent.asParent(task.traceparent) },
              Attributes.published({ ...task, subject, bodySize: task.body?.length ?? 0 }, 1)
            )
          )
        },
        serve: (options) =>
          Effect.suspend(() => {
            const server = new Server(nats, options, monotonicMs(clock), context)
            return Effect.provideService(PoolServer.serve(options, server), Nats, nats)
          })
      })
    })
  )
}

const unavailable = new Unavailable({ retryAfterMs: 2_000 })

const subjectOf = ({ owner, pool, queue }: TaskSubmission): string =>
  Subjects.taskSubject(queue, pool, owner === undefined ? "" : ownerToken(owner))

/** The job fields that a task leaves empty: no client waits for frames, and the request may be stored elsewhere. */
const noReply = {
  owner: undefined,
  attempt: 0,
  reply: "",
  deadline: 0,
  contentType: "",
  headers: undefined,
  isPlain: false
} as const

const publish = (nats: Nats["Service"], task: TaskSubmission): Effect.Effect<void, JetStreamFailed | QueueFull> =>
  attempt(() => {
    const version = Subjects.newestOf(task.queue)
    const { body = new Uint8Array(0) } = task
    const { headers, payload } = encodeJob({ ...noReply, ...task, version, bodySize: body.length }, body, task.id)
    return nats.outbox.request(subjectOf(task), payload, headers, answerWithinMs)
  }).pipe(
    Effect.flatMap((answer): Effect.Effect<void, JetStreamFailed | QueueFull> => {
      const { detail, verdict } = verdictIn(answer)
      if (verdict === "full") return Effect.fail(queueFull(task.queue, detail))
      return verdict === "unknown" ? Effect.fail(new JetStreamFailed({ detail })) : Effect.void
    })
  )

/** When an owner with too many batches may have room for another, in milliseconds. A batch takes minutes to hours. */
const batchRoomMs = 30_000

const queueFull = (queue: Subjects.TaskQueueName, detail: string): QueueFull => {
  if (!Subjects.isByOwner(queue) || !detail.includes("per subject")) return new QueueFull({ retryAfterMs: laterMs })
  const most = Subjects.mostOfOwner(queue)
  return queue === Subjects.batchQueue
    ? new QueueFull({ retryAfterMs: batchRoomMs, unfinished: { most, of: "batches" } })
    : new QueueFull({ retryAfterMs: laterMs, unfinished: { most, of: "tasks" } })
}

class Server implements PoolServer.PoolServer {
  readonly #nats: Nats["Service"]
  readonly #options: ServeTasksOptions
  readonly #fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly source: JobSource
  readonly #running = new Map<string, { readonly job: PulledJob; readonly fiber: Fiber.Fiber<Settlement> }>()
  #closing = false

  constructor(nats: Nats["Service"], options: ServeTasksOptions, now: () => number, context: Context.Context<never>) {
    this.#nats = nats
    this.#options = options
    this.#fork = Effect.runForkWith(context)
    this.source = new JobSource({ ...options, nats, now, onJob: (job) => this.#begin(job) })
  }

  readonly open = every(Timings.heartbeatMs, () => {
    // see `JobServer.ts`
    if (this.#nats.isConnected()) this.#beat()
  })

  reconnected(): void {
    this.#beat()
  }

  #beat(): void {
    for (const { job } of this.#running.values()) job.working()
  }

  readonly close = Effect.gen({ self: this }, function*() {
    this.#closing = true
    yield* this.source.stop
    yield* PoolServer.endWithin(this.#options.graceMs, [...this.#running.values()].map(({ fiber }) => fiber))
    this.#nats.outbox.flush()
    if (this.#nats.isConnected()) yield* this.#nats.flush
  })

  #begin(job: PulledJob): void {
    // the task is running here: have it redelivered later, to look again after it has ended
    if (this.#running.has(job.id)) return job.giveBack(laterMs)
    const fiber = this.#fork(this.#options.run(job))
    this.#running.set(job.id, { job, fiber })
    fiber.addObserver((exit) => {
      this.#running.delete(job.id)
      const settlement = Exit.isSuccess(exit) ? exit.value : "later"
      if (settlement === "done") return job.acknowledge()
      const afterMs = settlement === "later" ? laterMs : settlement.afterMs
      job.giveBack(this.#closing ? undefined : afterMs)
    })
  }
}
