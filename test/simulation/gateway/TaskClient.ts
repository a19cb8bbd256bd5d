/** A simulated client of a video: creates a task by the shipped code of ingress, polls it to its end, or cancels it. */
import { Effect, Option } from "effect"
import { hash } from "node:crypto"
import * as TaskId from "../../../services/ingress/routes/TaskId.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded } from "../../../shared/tasks/TaskState.ts"
import type { TaskStorageFull } from "../../../shared/tasks/TaskBytes.ts"
import type { OtherBody, Tasks } from "../../../shared/tasks/Tasks.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { IngressProcess } from "./Processes.ts"
import type { VideoOrder } from "./VideoStudio.ts"
import type { World } from "../world/World.ts"

export interface TaskRequest extends VideoOrder {
  readonly at: number
  readonly tenant: string
  readonly cancelsAfterMs: number | undefined
}

const pollMs = 2_000

export class TaskClient {
  readonly #world: World
  readonly request: TaskRequest
  readonly #pick: () => IngressProcess | undefined
  /** Its task, once the gateway has answered with it. */
  id: string | undefined
  createdAt: number | undefined
  /** Whether no ingress was ready for one of its requests. */
  hasFoundNone = false
  isCancelling = false
  /** The record as last seen. */
  record: TaskRecord | undefined

  /** `pick` chooses an ingress that is ready. */
  constructor(world: World, request: TaskRequest, pick: () => IngressProcess | undefined) {
    this.#world = world
    this.request = request
    this.#pick = pick
  }

  get hasEnded(): boolean {
    return this.record !== undefined && hasEnded(this.record.status)
  }

  start(): void {
    const { at: _at, cancelsAfterMs, tenant, ...order } = this.request
    this.#at((ingress, tasks) =>
      Effect.gen({ self: this }, function*() {
        const body = Buffer.from(JSON.stringify({ model: "video", prompt: JSON.stringify(order) }))
        const id = TaskId.random()
        const bodyHash = hash("sha256", body, "hex")
        const task = { id, tenant, operation: "video.generations", model: "video", pool: "default", bodyHash }
        yield* tasks.create(task, body, false)
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
    this.#at((_, tasks) =>
      Effect.gen({ self: this }, function*() {
        const found = Option.getOrUndefined(yield* tasks.find(id))
        if (found === undefined) return
        this.#see(found)
        yield* tasks.resubmit([found])
      })
    )
  }

  #cancel(id: string): void {
    if (this.hasEnded) return
    this.isCancelling = true
    this.#at((_, tasks) =>
      Effect.gen({ self: this }, function*() {
        const found = Option.getOrUndefined(yield* tasks.find(id))
        if (found === undefined) return
        const records = Option.getOrUndefined(yield* tasks.cancel([found]))
        if (records !== undefined) this.#see(records[0])
      })
    )
  }

  #see(record: TaskRecord): void {
    if (this.hasEnded) return
    this.record = record
    if (this.hasEnded) this.#world.trace.tell("client", `task ${this.request.task} is ${record.status}`)
  }

  /** Runs at some ingress. A client whose request fails polls again. */
  #at(
    run: (
      ingress: IngressProcess,
      tasks: Tasks["Service"]
    ) => Effect.Effect<void, JobError | OtherBody | TaskStorageFull>
  ): void {
    const ingress = this.#pick()
    const tasks = ingress?.tasks
    if (ingress === undefined || tasks === undefined) {
      this.hasFoundNone = true
      return
    }
    this.#world.on(ingress.machine, () => void Effect.runFork(Effect.ignore(run(ingress, tasks))))
  }
}
