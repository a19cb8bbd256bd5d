/** A simulated client: one request, and everything that it gets. */
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { JobHandle } from "../../../shared/bus/ingress/JobRequest.ts"
import type { IngressProcess } from "./Processes.ts"
import { freeModel, type Order } from "./Provider.ts"
import { wallMs } from "../world/Interposition.ts"
import type { World } from "../world/World.ts"

export interface Request extends Order {
  readonly at: number
  readonly isPaid: boolean
  readonly tenant: string
  readonly patienceMs: number
  /** Bytes of the request's body. */
  readonly bodyBytes: number
  /** It leaves so many milliseconds after its start. */
  readonly leavesAfterMs: number | undefined
  /** How long it takes to read a chunk, in milliseconds. */
  readonly readMs: number
}

export type Outcome = "complete" | "left" | "ingress lost" | "no ingress" | JobError["_tag"]

export class Client {
  readonly #world: World
  readonly request: Request
  readonly ingress: IngressProcess | undefined
  job: string | undefined
  chunks: Array<string> = []
  #incomplete: Buffer = Buffer.alloc(0)
  endedAt: number | undefined
  outcome: Outcome | undefined
  /** How often it was told of an end: once is right. */
  ends = 0
  claimedAt: number | undefined

  constructor(world: World, request: Request, ingress: IngressProcess | undefined) {
    this.#world = world
    this.request = request
    this.ingress = ingress
  }

  start(): void {
    const { ingress, request } = this
    const world = this.#world
    if (ingress?.client === undefined || !ingress.isReady) return this.#end("no ingress")
    const { machine } = ingress
    machine.onDeath.push(() => this.outcome === undefined ? this.#end("ingress lost") : undefined)
    world.on(machine, () => {
      const order: Order = {
        request: request.request,
        chunks: request.chunks,
        everyMs: request.everyMs,
        chunkBytes: request.chunkBytes
      }
      let hasBytes = false
      const handle: JobHandle | undefined = ingress.client?.submit({
        workload: "chat",
        pool: "default",
        operation: "chat.completions",
        model: request.isPaid ? "paid" : freeModel,
        tenant: request.tenant,
        weight: 1,
        priority: "standard",
        contentType: "application/json",
        body: Buffer.from(JSON.stringify(order).padEnd(request.bodyBytes)),
        deadline: wallMs() + request.patienceMs,
        traceparent: undefined
      }, {
        onClaim: () => void (this.claimedAt = world.now),
        onStart: () => undefined,
        onChunk: (bytes) => {
          this.#receive(bytes)
          const { length } = bytes
          const isFirst = !hasBytes
          hasBytes = true
          world.after(request.readMs, machine, () => handle?.taken(length))
          if (isFirst) setImmediate(() => handle?.flushed())
        },
        onRestart: () => {
          if (hasBytes) world.trace.tell(machine.name, `request ${request.request} starts again`)
          this.chunks = []
          this.#incomplete = Buffer.alloc(0)
          hasBytes = false
        },
        onEnd: () => this.#end("complete"),
        onError: (error) => this.#end(error._tag)
      })
      this.job = handle?.id
      world.trace.tell(machine.name, `request ${request.request} is job ${this.job}`)
      if (request.leavesAfterMs !== undefined) {
        world.after(request.leavesAfterMs, machine, () => {
          if (this.outcome !== undefined) return
          this.#end("left")
          handle?.cancel()
        })
      }
    })
  }

  /** A frame may have several chunks, or a part of one. */
  #receive(bytes: Uint8Array): void {
    const { chunkBytes } = this.request
    this.#incomplete = Buffer.concat([this.#incomplete, bytes])
    while (this.#incomplete.length >= chunkBytes) {
      this.chunks.push(this.#incomplete.toString("latin1", 0, 40).split(";")[0] ?? "")
      this.#incomplete = this.#incomplete.subarray(chunkBytes)
    }
  }

  #end(outcome: Outcome): void {
    this.ends++
    // it no longer listens
    if (this.outcome === "left" || this.outcome === "ingress lost") return void this.ends--
    this.outcome = outcome
    this.endedAt = this.#world.now
    this.#world.trace.tell("client", `request ${this.request.request} ended: ${outcome}, ${this.chunks.length} chunks`)
  }
}
