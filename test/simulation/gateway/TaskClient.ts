/** A simulated client of a video: creates a task as the shipped route does, polls it to its end, or cancels it. */
import { Effect, Option } from "effect"
import { hash } from "node:crypto"
import * as TaskId from "../../../services/ingress/routes/TaskId.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import * as VideoTask from "../../../shared/tasks/VideoTask.ts"
import type { TaskRefused } from "../../../shared/tasks/VideoTasks.ts"
import type { IngressProcess, Tasks } from "./Processes.ts"
import type { VideoOrder } from "./VideoStudio.ts"
import { wallMs } from "../world/Interposition.ts"
import type { World } from "../world/World.ts"

export interface TaskRequest extends VideoOrder {
  readonly at: number
  readonly tenant: string
  readonly cancelsAfterMs: number | undefined
}

const pollMs = 2_000
/** A task that is queued at this age is submitted again when it is polled; see `Tasks.ts`. */
const resubmitMs = { from: 10_000, until: 100_000 }

export class TaskClient {
  readonly #world: World
  readonly request: TaskRequest
  readonly #pick: () => IngressProcess | undefined
  /** Its task, once the gateway has answered with it. */
  id: string | undefined
  createdAt: number | undefined
  isCancelling = false
  /** The record as last seen. */
  record: VideoTask.VideoTask | undefined

  /** `pick` chooses an ingress that is ready. */
  constructor(world: World, request: TaskRequest, pick: () => IngressProcess | undefined) {
    this.#world = world
    this.request = request
    this.#pick = pick
  }

  get hasEnded(): boolean {
    return this.record !== undefined && VideoTask.hasEnded(this.record.status)
  }

  start(): void {
    const { at: _at, cancelsAfterMs, tenant, ...order } = this.request
    this.#at((ingress, { queue, store }) =>
      Effect.gen({ self: this }, function*() {
        const body = Buffer.from(JSON.stringify({ model: "video", prompt: JSON.stringify(order) }))
        const id = TaskId.random()
        const bodyHash = hash("sha256", body, "hex")
        const fresh = VideoTask.make(
          { id, tenant, operation: "video.generations", model: "video", pool: "default", bodyHash },
          wallMs()
        )
        yield* store.create(fresh, body)
        yield* Effect.tapError(submit(queue, fresh), () => Effect.forkDetach(Effect.ignore(store.cancel(id))))
        this.id = id
        this.createdAt = this.#world.now
        this.#world.trace.tell(ingress.machine.name, `task ${order.task} is ${id}`)
        this.#world.after(pollMs, undefined, () => this.#poll())
        if (cancelsAfterMs !== undefined) this.#world.after(cancelsAfterMs, undefined, () => this.#cancel(id))
      })
    )
  }

  #poll(): void {
    const { id } = this
    if (id === undefined || this.hasEnded) return
    this.#world.after(pollMs, undefined, () => this.#poll())
    this.#at((_, { queue, store }) =>
      Effect.gen({ self: this }, function*() {
        const found = Option.getOrUndefined(yield* store.find(id))
        if (found === undefined) return
        this.#see(found)
        const waitedMs = wallMs() - found.created
        if (found.status === "queued" && waitedMs > resubmitMs.from && waitedMs < resubmitMs.until) {
          yield* submit(queue, found)
        }
      })
    )
  }

  #cancel(id: string): void {
    if (this.hasEnded) return
    this.isCancelling = true
    this.#at((_, { store }) => Effect.map(store.cancel(id), (record) => this.#see(record)))
  }

  #see(record: VideoTask.VideoTask): void {
    if (this.hasEnded) return
    this.record = record
    if (this.hasEnded) this.#world.trace.tell("client", `task ${this.request.task} is ${record.status}`)
  }

  /** Runs at some ingress. A client whose request fails polls again. */
  #at(
    run: (ingress: IngressProcess, tasks: Tasks) => Effect.Effect<unknown, JobError | JetStreamFailed | TaskRefused>
  ): void {
    const ingress = this.#pick()
    const tasks = ingress?.tasks
    if (ingress === undefined || tasks === undefined) return
    this.#world.on(ingress.machine, () => void Effect.runFork(Effect.ignore(run(ingress, tasks))))
  }
}

const submit = (
  queue: Tasks["queue"],
  { id, model, operation, pool, tenant, traceparent }: VideoTask.VideoTask
) => queue.submit({ workload: "video", id, model, operation, pool, tenant, traceparent })
