/** A simulated provider of videos. It records what it was asked to make, and by which worker. Every creation is paid. */
import { Effect } from "effect"
import { ProviderFailed, ProviderRejected } from "../../../shared/contract/JobError.ts"
import type { LocalVideoEngine } from "../../../shared/provider/call/VideoEngine.ts"
import type { Machine, World } from "../world/World.ts"

/** The video that a client asks for, written into the prompt of its request. */
export interface VideoOrder {
  readonly task: number
  /** How long the provider works, in milliseconds. */
  readonly makesMs: number
  /** What the provider does: `unreachable`, until it was asked three times; `fails`, at the end; `kills` the worker that asks. */
  readonly fate: "made" | "unreachable" | "fails" | "kills"
}

export interface Creation {
  readonly id: number
  /** The gateway's id of the task. */
  readonly task: string
  readonly worker: string
  readonly at: number
  isCancelled: boolean
}

export const studioName = "studio"

const travelMs = 20
const pollMs = 400
const triesUntilReached = 3

export class VideoStudio {
  readonly #world: World
  readonly creations: Array<Creation> = []
  /** The workers that each task has killed. */
  readonly killed = new Map<string, Array<string>>()
  readonly #tries = new Map<string, number>()
  /** Ends a worker at once; set by the simulation. */
  onKill: (machine: Machine) => void = () => undefined

  constructor(world: World) {
    this.#world = world
  }

  engine(machine: Machine): LocalVideoEngine["Service"] {
    const orderOf = ({ request }: { readonly request: { readonly prompt: string } }) =>
      JSON.parse(request.prompt) as VideoOrder
    return {
      start: (call) =>
        Effect.gen({ self: this }, function*() {
          const { fate } = orderOf(call)
          const tries = (this.#tries.get(call.id) ?? 0) + 1
          this.#tries.set(call.id, tries)
          if (fate === "unreachable" && tries < triesUntilReached) {
            return yield* new ProviderFailed({ provider: studioName, reason: "unreachable" })
          }
          yield* Effect.sleep(travelMs)
          const creation = this.#create(call.id, machine)
          // the worker may die before it gets the answer
          yield* Effect.sleep(travelMs)
          return { creation: creation.id }
        }),
      follow: (call, task, report) =>
        Effect.gen({ self: this }, function*() {
          const { fate, makesMs } = orderOf(call)
          const creation = this.creations[(task as { readonly creation: number }).creation]!
          for (;;) {
            const doneMs = this.#world.now - creation.at
            if (fate === "kills" && doneMs > makesMs / 2) {
              this.killed.set(call.id, [...this.killed.get(call.id) ?? [], machine.name])
              this.onKill(machine)
              return yield* Effect.never
            }
            if (doneMs >= makesMs) break
            report(100 * doneMs / makesMs)
            yield* Effect.sleep(pollMs)
          }
          if (fate === "fails" || creation.isCancelled) {
            return yield* new ProviderRejected({ provider: studioName, status: 400, message: "cannot be made" })
          }
          const metadata = { duration: 1, fps: 24, width: 64, height: 64, seed: null }
          return { bytes: Buffer.alloc(2_000, creation.id), format: "mp4" as const, metadata }
        }),
      cancel: (_, task) =>
        Effect.sync(() => {
          const creation = this.creations[(task as { readonly creation: number }).creation]!
          creation.isCancelled = true
          this.#world.trace.tell(studioName, `creation ${creation.id} is cancelled`)
        })
    }
  }

  #create(task: string, machine: Machine): Creation {
    const { now, trace } = this.#world
    const creation = { id: this.creations.length, task, worker: machine.name, at: now, isCancelled: false }
    this.creations.push(creation)
    trace.tell(studioName, `creation ${creation.id} of ${machine.name} for ${task}`)
    return creation
  }
}
