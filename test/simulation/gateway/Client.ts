/** A simulated client: sends one request, and records everything that it receives. */
import { Cause, Effect, Exit, type Fiber, Option } from "effect"
import type { Settle } from "../../../services/ingress/request/Admission.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import { tokenDemand } from "../../../shared/contract/TokenEstimate.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import type { JobHandle } from "../../../shared/bus/ingress/JobRequest.ts"
import type { KnownKey } from "./Keys.ts"
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
  /** When it disconnects, in milliseconds after its start. */
  readonly leavesAfterMs: number | undefined
  /** The pause before each read of what has arrived, in milliseconds. */
  readonly readMs: number
}

/** `refused`: its key has reached a limit. */
export type Outcome = "complete" | "left" | "ingress lost" | "no ingress" | "refused" | JobError["_tag"]

/** A request of the API whose only message is the order. */
const apiBody = (order: Order, { bodyBytes, isPaid }: Request): Buffer =>
  Buffer.from(JSON.stringify({
    model: isPaid ? "paid" : freeModel,
    stream: true,
    messages: [{ role: "user", content: JSON.stringify(order).padEnd(bodyBytes) }]
  }))

export class Client {
  readonly #world: World
  readonly request: Request
  readonly ingress: IngressProcess | undefined
  /** Its key, if keys have limits. */
  readonly key: KnownKey | undefined
  job: string | undefined
  chunks: Array<string> = []
  /** The status of each start of its answer. */
  starts: Array<number | undefined> = []
  #incomplete: Buffer = Buffer.alloc(0)
  /** How many bytes have arrived that it has not read, now and at most. */
  #unread = 0
  mostUnread = 0
  endedAt: number | undefined
  outcome: Outcome | undefined
  /** How many times the gateway has reported an end to the client: exactly once is right. */
  ends = 0
  /** When its ingress received the job, after the key's limits. A frozen ingress receives it late. */
  submittedAt: number | undefined
  claimedAt: number | undefined
  /** When its key's limits admitted it, and when it no longer counted as running. */
  admittedAt: number | undefined
  settledAt: number | undefined
  /** The tokens that it reserves, and those that count for its key in the end. */
  demand = 0
  tokens = 0
  /** The limit of its key that refused it. */
  refusedBy: string | undefined
  #handle: JobHandle | undefined
  /** Whether its request and answer are those of the API, for real providers. */
  readonly #isApi: boolean

  constructor(
    world: World,
    request: Request,
    ingress: IngressProcess | undefined,
    { isApi, key }: { readonly isApi: boolean; readonly key: KnownKey | undefined }
  ) {
    this.#isApi = isApi
    this.#world = world
    this.request = request
    this.ingress = ingress
    this.key = key
  }

  start(): void {
    const { ingress, request } = this
    const world = this.#world
    if (ingress?.client === undefined || !ingress.isReady) return this.#end("no ingress")
    const { machine } = ingress
    machine.onDeath.push(() => {
      if (this.admittedAt !== undefined) this.settledAt ??= world.now
      if (this.outcome === undefined) this.#end("ingress lost")
    })
    world.on(machine, () => {
      let leave: () => void
      if (ingress.admitting === undefined || this.key === undefined) {
        this.#submit(request.tenant, undefined)
        leave = () => this.#handle?.cancel()
      } else {
        const serving = this.#admit(ingress.admitting, this.key)
        leave = () => serving.interruptUnsafe()
      }
      if (request.leavesAfterMs !== undefined) {
        world.after(request.leavesAfterMs, machine, () => {
          if (this.outcome === undefined) this.#end("left")
          leave()
        })
      }
    })
  }

  /** Submits the job once the key's limits allow it. */
  #admit(
    { admission, keys }: NonNullable<IngressProcess["admitting"]>,
    { secret }: KnownKey
  ): Fiber.Fiber<unknown, unknown> {
    const { bodyBytes: bytes, chunks } = this.request
    const decoded = { model: "any", max_tokens: chunks + 1 }
    this.demand = tokenDemand(chatCompletions, bytes, (name) => Reflect.get(decoded, name)).tokens
    const work = Effect.flatMap(
      keys.authenticate(secret),
      (key) =>
        Effect.flatMap(
          admission.admit(key, { operation: chatCompletions, model: "any", decoded, bytes }),
          (settle) =>
            Effect.callback<void>((resume) => {
              this.admittedAt = this.#world.now
              this.#submit(key.id, settle, () => resume(Effect.void))
              return Effect.sync(() => {
                this.#handle?.cancel()
                settle?.(undefined)
              })
            })
        )
    )
    const serving = Effect.runFork(work)
    serving.addObserver((exit) => {
      if (this.admittedAt !== undefined) this.settledAt ??= this.#world.now
      const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
      if (error === undefined) return
      this.refusedBy = error._tag === "LimitReached" ? error.limit : undefined
      this.#end(error._tag === "LimitReached" ? "refused" : "Unavailable")
    })
    return serving
  }

  #submit(tenant: string, settle: Settle | undefined, onEnd: () => void = () => undefined): void {
    const { ingress, request } = this
    const world = this.#world
    const machine = ingress!.machine
    const order: Order = {
      request: request.request,
      chunks: request.chunks,
      everyMs: request.everyMs,
      chunkBytes: request.chunkBytes
    }
    let hasBytes = false
    this.submittedAt = world.now
    this.#handle = ingress?.client?.submit({
      workload: "chat",
      pool: "default",
      operation: "chat.completions",
      model: request.isPaid ? "paid" : freeModel,
      tenant,
      owner: undefined,
      weight: 1,
      priority: "standard",
      contentType: "application/json",
      body: this.#isApi ? apiBody(order, request) : Buffer.from(JSON.stringify(order).padEnd(request.bodyBytes)),
      isPlain: false,
      deadline: wallMs() + request.patienceMs,
      traceparent: undefined
    }, {
      onClaim: () => void (this.claimedAt ??= world.now),
      onWait: () => undefined,
      onStart: (head: { readonly status: number } | undefined) => this.starts.push(head?.status),
      onChunk: (bytes) => {
        this.#receive(bytes)
        const isReading = this.#unread > 0
        this.#unread += bytes.length
        this.mostUnread = Math.max(this.mostUnread, this.#unread)
        const isFirst = !hasBytes
        hasBytes = true
        // it reads all that is there
        if (!isReading) {
          world.after(request.readMs, machine, () => {
            const read = this.#unread
            this.#unread = 0
            this.#handle?.taken(read)
          })
        }
        if (isFirst) setImmediate(() => this.#handle?.flushed())
      },
      onRestart: () => {
        if (hasBytes) world.trace.tell(machine.name, `request ${request.request} starts again`)
        this.chunks = []
        this.starts = []
        this.#incomplete = Buffer.alloc(0)
        hasBytes = false
      },
      onEnd: (usage) => {
        this.tokens = usage === undefined ? 0 : usage.inputTokens + usage.outputTokens
        settle?.(usage)
        this.#end("complete")
        onEnd()
      },
      onError: (error) => {
        settle?.(hasBytes ? undefined : "nothing")
        this.#end(error._tag)
        onEnd()
      }
    })
    this.job = this.#handle?.id
    world.trace.tell(machine.name, `request ${request.request} is job ${this.job}`)
  }

  /** A frame may have several chunks, or a part of one. */
  #receive(bytes: Uint8Array): void {
    const { chunkBytes } = this.request
    this.#incomplete = Buffer.concat([this.#incomplete, bytes])
    if (this.#isApi) return this.#receiveEvents()
    while (this.#incomplete.length >= chunkBytes) {
      this.chunks.push(this.#incomplete.toString("latin1", 0, 40).split(";")[0] ?? "")
      this.#incomplete = this.#incomplete.subarray(chunkBytes)
    }
  }

  #receiveEvents(): void {
    for (let end = this.#incomplete.indexOf("\n\n"); end >= 0; end = this.#incomplete.indexOf("\n\n")) {
      const data = this.#incomplete.toString("latin1", 0, end).replace(/^data: /, "")
      this.#incomplete = this.#incomplete.subarray(end + 2)
      if (data === "[DONE]") continue
      const { choices } = JSON.parse(data) as {
        readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string } }>
      }
      const text = choices[0]?.delta.content
      if (text !== undefined) this.chunks.push(text.split(";")[0] ?? "")
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
