/** A simulated provider. It records its calls, the workers that made them, and what it bills. */
import { Effect } from "effect"
import type { Performer } from "../../../shared/worker/JobLife.ts"
import type { Machine, World } from "../world/World.ts"

/** The answer that a client asks for. */
export interface Order {
  readonly request: number
  readonly chunks: number
  readonly everyMs: number
  readonly chunkBytes: number
}

export interface Call {
  readonly id: number
  readonly request: number
  readonly worker: string
  readonly isPaid: boolean
  readonly from: number
  until: number | undefined
  /** How many chunks the call has made, for which the provider bills. */
  made: number
  outcome: "open" | "complete" | "aborted" | "failed"
  /** The provider's name, if there are several. */
  readonly provider?: string
  /** Whether the worker has got a chunk over HTTP. */
  hasArrived?: boolean
  /** Whether the connection broke before that, so that what the provider had sent was lost. */
  wasLost?: boolean
  /** What the provider did to a call that failed. */
  failure?: string
}

/** The name of models whose calls cost nothing; all others are paid. */
export const freeModel = "free"

/** A chunk is an event that names its request, its call and its place, so that a client can tell whose bytes it gets. */
export const chunkOf = ({ id }: Call, { chunkBytes, request }: Order, at: number): Buffer => {
  const bytes = Buffer.alloc(chunkBytes, "-")
  bytes.write(`${request}:${id}:${at};`)
  bytes.write("\n\n", chunkBytes - 2)
  return bytes
}

export const placeIn = (chunk: string): { readonly request: number; readonly call: number; readonly at: number } => {
  const [request, call, at] = chunk.split(":").map(Number)
  return { request: request!, call: call!, at: at! }
}

const travelMs = 5

export class Provider {
  readonly #world: World
  readonly calls: Array<Call> = []

  constructor(world: World) {
    this.#world = world
  }

  get open(): number {
    return this.calls.filter(({ outcome }) => outcome === "open").length
  }

  performer(machine: Machine): Performer["Service"] {
    const isIdempotent = (model: string) => model === freeModel
    return {
      isIdempotent,
      cost: () => null,
      costInBatch: () => null,
      perform: (work, reply) =>
        Effect.gen({ self: this }, function*() {
          const order = JSON.parse(Buffer.from(work.body).toString().trimEnd()) as Order
          if (!isIdempotent(work.model)) yield* work.commit
          work.onCall({ name: "provider", model: work.model })
          const call = this.begin(machine.name, order.request, !isIdempotent(work.model))
          machine.onDeath.push(() => this.end(call, "aborted"))
          yield* Effect.gen({ self: this }, function*() {
            yield* Effect.sleep(2 * travelMs)
            reply.start({ status: 200, contentType: "text/event-stream", headers: {} })
            for (let at = 0; at < order.chunks; at++) {
              yield* Effect.sleep(order.everyMs)
              call.made++
              const isFull = !reply.write(chunkOf(call, order, at))
              if (isFull) yield* Effect.callback<void>((resume) => reply.onDrain(() => resume(Effect.void)))
            }
            this.end(call, "complete")
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => this.end(call, "aborted"))))
          return { inputTokens: 1, outputTokens: order.chunks }
        })
    }
  }

  begin(worker: string, request: number, isPaid: boolean, provider?: string): Call {
    const { now, trace } = this.#world
    const call: Call = {
      id: this.calls.length,
      request,
      worker,
      isPaid,
      from: now,
      until: undefined,
      made: 0,
      outcome: "open",
      ...(provider === undefined ? {} : { provider })
    }
    this.calls.push(call)
    trace.tell(provider ?? "provider", `call ${call.id} of ${worker} for request ${request}${isPaid ? ", paid" : ""}`)
    return call
  }

  end(call: Call, outcome: Exclude<Call["outcome"], "open">, failure?: string): void {
    if (call.outcome !== "open") return
    call.outcome = outcome
    call.until = this.#world.now
    if (failure !== undefined) call.failure = failure
    this.#world.trace.tell(
      call.provider ?? "provider",
      `call ${call.id} for request ${call.request} is ${outcome} after ${call.made} chunks${
        failure === undefined ? "" : `: ${failure}`
      }`
    )
  }
}
