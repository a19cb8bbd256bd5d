/** A simulated client of an answer in the background: creates its task by the shipped code of ingress, polls it to its end, reads or cancels it. */
import { Effect, Logger, Option, Stream } from "effect"
import { demandOf } from "../../../services/ingress/request/Admission.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import type { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded } from "../../../shared/tasks/TaskState.ts"
import type { World } from "../world/World.ts"
import type { KnownKey } from "./Keys.ts"
import type { Admitting, IngressProcess } from "./Processes.ts"
import { freeModel, type Order } from "./Provider.ts"

export interface AnswerRequest extends Order {
  readonly at: number
  readonly isPaid: boolean
  readonly tenant: string
  readonly cancelsAfterMs: number | undefined
}

const pollMs = 1_000

/** How often it polls a task that has ended, to check that nothing changes any more. */
const looksAfterEnd = 3

export class AnswerClient {
  readonly #world: World
  readonly request: AnswerRequest
  readonly key: KnownKey
  readonly #pick: () => IngressProcess | undefined
  readonly #owner: Owner
  /** Its task, once the gateway has answered with it. */
  id: string | undefined
  isCancelling = false
  /** The records that it has seen of the ended task. */
  readonly ends: Array<TaskRecord> = []
  /** The answer of a completed task. */
  answer: Buffer | undefined

  /** `pick` chooses an ingress that is ready. */
  constructor(world: World, request: AnswerRequest, key: KnownKey, pick: () => IngressProcess | undefined) {
    this.#world = world
    this.request = request
    this.key = key
    this.#pick = pick
    this.#owner = { id: key.id, salt: "salt" }
  }

  /** The ended task as last seen. */
  get record(): TaskRecord | undefined {
    return this.ends.at(-1)
  }

  /** Whether it has no more to do. */
  get isDone(): boolean {
    return this.id === undefined ||
      (this.ends.length >= looksAfterEnd && (this.record?.status !== "completed" || this.answer !== undefined))
  }

  start(): void {
    const { cancelsAfterMs, isPaid, request } = this.request
    const { random } = this.#world
    const body = Buffer.from(JSON.stringify(this.request))
    this.#at((ingress, tasks, { admission, keys }) =>
      Effect.gen({ self: this }, function*() {
        const key = yield* keys.authenticate(this.key.secret)
        const decoded = { model: "any", max_tokens: this.request.chunks + 1 }
        const asked = { operation: chatCompletions, model: "any", decoded, bytes: body.length, isLater: true }
        yield* admission.admit(key, asked)
        const digits = Array.from({ length: 32 }, () => random.integer(0, 15).toString(16)).join("")
        const { id } = yield* tasks.create({
          id: `task_${digits}`,
          owner: this.#owner,
          operation: chatCompletions.name,
          model: isPaid ? "paid" : freeModel,
          pool: "default",
          tenant: key.id,
          body,
          request: { workload: "chat", contentType: "application/json", streams: true, tokens: demandOf(asked).tokens }
        })
        this.id = id
        this.#world.trace.tell(ingress.machine.name, `request ${request} is ${id}`)
        this.#world.after(pollMs, undefined, () => this.#poll(id))
        if (cancelsAfterMs !== undefined) this.#world.after(cancelsAfterMs, undefined, () => this.#cancel(id))
      })
    )
  }

  #poll(id: string): void {
    if (this.isDone) return
    this.#world.after(pollMs, undefined, () => this.#poll(id))
    this.#at((_, tasks) =>
      Effect.gen({ self: this }, function*() {
        const record = Option.getOrUndefined(yield* tasks.find(this.#owner, id))
        if (record !== undefined && hasEnded(record.status)) this.#see(record)
        if (record?.status !== "completed" || this.answer !== undefined) return
        const pages = yield* Stream.runCollect(tasks.pages(this.#owner, id))
        this.answer = Buffer.concat(pages.flatMap((page) => page === "silence" ? [] : [page.bytes]))
      })
    )
  }

  #cancel(id: string): void {
    if (this.ends.length > 0) return
    this.isCancelling = true
    this.#at((_, tasks) =>
      Effect.map(tasks.cancel(this.#owner, id), (found) => {
        if (Option.isSome(found)) this.#see(found.value)
      })
    )
  }

  #see(record: TaskRecord): void {
    if (this.ends.length === 0) {
      this.#world.trace.tell("client", `request ${this.request.request} is ${record.status}`)
    }
    this.ends.push(record)
  }

  /** Runs at some ingress. A client whose request fails polls again. */
  #at<E>(
    run: (ingress: IngressProcess, tasks: AnswerTasks["Service"], admitting: Admitting) => Effect.Effect<void, E>
  ): void {
    const ingress = this.#pick()
    if (ingress?.answers === undefined || ingress.admitting === undefined) return
    const { admitting, answers } = ingress
    this.#world.on(
      ingress.machine,
      () => void Effect.runFork(Effect.provide(Effect.ignore(run(ingress, answers, admitting)), Logger.layer([])))
    )
  }
}
