/** Everything between a model's name and the calls to providers, with scripted providers on the test's clock. */
import { Clock, ConfigProvider, Context, Effect, Fiber, Layer, Random } from "effect"
import { TestClock } from "effect/testing"
import { Catalogue, parse } from "../../../../shared/catalogue/Catalogue.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import {
  type JobError,
  ProviderFailed,
  ProviderRateLimited,
  ProviderRejected
} from "../../../../shared/contract/JobError.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import { Limits } from "../../../../shared/limits/Limits.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { LocalEngines } from "../../../../shared/provider/protocols/local/Local.ts"
import type { Call, Perform } from "../../../../shared/provider/call/Protocol.ts"
import type { OnWait } from "../../../../shared/provider/routing/Gate.ts"
import { Providers } from "../../../../shared/provider/routing/Providers.ts"
import { SharedLimits } from "../../../../shared/provider/routing/SharedLimits.ts"
import type { Head, Sink } from "../../../../shared/provider/transport/Sink.ts"
import { ResultStore } from "../../../../shared/provider/call/ResultStore.ts"
import type { Commit } from "../../../../shared/provider/transport/Commitment.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { secretsIn } from "../../../fixture/ProviderKey.ts"

/** A call that a provider received. */
export interface Received {
  /** `provider/model`. */
  readonly name: string
  readonly at: number
  readonly tenant: string
  /** See `Call`. */
  readonly answersAs: string
}

const head: Head = { status: 200, contentType: "application/json", headers: {} }

/** Answers after a delay. */
export const answers = (afterMs = 0, usage?: Usage): Perform => (_, sink) =>
  Effect.sync(() => {
    sink.start(head)
    return usage
  }).pipe(afterMs === 0 ? (effect) => effect : Effect.delay(afterMs))

/** Starts its answer at once and ends it after a while. */
export const streams = (forMs: number): Perform => (_, sink) =>
  Effect.andThen(Effect.sync(() => sink.start(head)), Effect.delay(Effect.undefined, forMs))

export const fails = (error: (provider: string) => JobError): Perform => (call) =>
  Effect.fail(error(call.endpoint.name))

export const status = (status: number, retryAfterMs: number | null = null): Perform =>
  fails((provider) => new ProviderFailed({ provider, reason: "status", status, retryAfterMs }))

export const rateLimited = (retryAfterMs: number | null): Perform =>
  fails((provider) => new ProviderRateLimited({ provider, retryAfterMs }))

export const rejected: Perform = fails((provider) =>
  new ProviderRejected({ provider, status: 400, message: "no", type: null, param: null, code: null })
)

export const tooLong: Perform = fails((provider) =>
  new ProviderRejected({ provider, status: 400, message: "too long", code: "context_length_exceeded" })
)

/** Fails this share of the calls at random. */
export const fallible = (share: number): Perform => (call, sink) =>
  Effect.flatMap(Random.next, (chance) => (chance < share ? status(500) : answers())(call, sink))

/** The result of a request. */
export type Outcome =
  | { readonly kind: "answered"; readonly headers: Head["headers"] }
  | { readonly kind: "failed"; readonly error: JobError; readonly started: boolean }

export class Scripted {
  readonly received: Array<Received> = []
  readonly #script = new Map<string, Perform>()
  readonly #once = new Map<string, Array<Perform>>()
  #providers: Providers["Service"] | undefined
  #catalogue: (text: string) => Effect.Effect<void> = () => Effect.void

  /** The providers of this catalogue, each with `protocol: local`. */
  static readonly make = Effect.fnUntraced(
    function*(catalogue: string, limits: Layer.Layer<Limits> = Limits.layerMemory) {
      const scripted = new Scripted()
      let snapshot = yield* parse("gateway.yaml", catalogue)
      scripted.#catalogue = (text) =>
        Effect.map(Effect.orDie(parse("gateway.yaml", text)), (parsed) => {
          snapshot = parsed
        })
      const built = yield* Layer.build(Providers.layer.pipe(Layer.provide([
        Layer.succeed(Catalogue, { current: () => snapshot }),
        Layer.succeed(LocalEngines, {
          performs: new Map<string, Perform>([[chatCompletions.name, (call, sink) => scripted.#receive(call, sink)]])
        }),
        Layer.succeed(Upstream, { exchange: () => Effect.die("no call over HTTP expected") }),
        GuardedFetch.layer,
        secretsIn({}),
        ResultStore.layerNone,
        Layer.effect(SharedLimits, Limits).pipe(Layer.provide(limits)),
        ConfigProvider.layer(ConfigProvider.fromUnknown({}))
      ])))
      scripted.#providers = Context.get(built, Providers)
      return scripted
    },
    Effect.orDie
  )

  /** Sets what `provider/model` does from now on; the default is to answer. */
  behave(name: string, answers: Perform): void {
    this.#script.set(name, answers)
  }

  behaveOnce(name: string, ...answers: ReadonlyArray<Perform>): void {
    this.#once.set(name, [...this.#once.get(name) ?? [], ...answers])
  }

  /** Replaces the catalogue. */
  edit(catalogue: string): Effect.Effect<void> {
    return this.#catalogue(catalogue)
  }

  /** The names of the targets called since the last call of this. */
  calls(): ReadonlyArray<string> {
    return this.received.splice(0).map(({ name }) => name)
  }

  get delays(): ReturnType<Providers["Service"]["delays"]> {
    return this.#providers!.delays()
  }

  get isIdempotent(): Providers["Service"]["isIdempotent"] {
    return this.#providers!.isIdempotent
  }

  request(
    model: string,
    { body = {}, onWait, retract = Effect.void, timeoutMs = 30_000, tenant = "key" }: {
      readonly body?: object
      readonly timeoutMs?: number
      readonly tenant?: string
      readonly retract?: Commit
      readonly onWait?: OnWait
    } = {}
  ): Effect.Effect<Outcome> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      let begun: Head | undefined
      const sink: Sink = {
        get hasStarted() {
          return begun !== undefined
        },
        start: (head) => {
          begun = head
        },
        write: () => true,
        onDrain: (resume) => resume()
      }
      return this.#providers!.perform({
        operation: chatCompletions,
        model,
        tenant,
        contentType: "application/json",
        body: Buffer.from(JSON.stringify({ model, messages: [], ...body })),
        deadline: now + timeoutMs,
        queuedMs: 0,
        retract,
        ...(onWait === undefined ? {} : { onWait })
      }, sink).pipe(
        Effect.match({
          onSuccess: (): Outcome => ({ kind: "answered", headers: begun?.headers ?? {} }),
          onFailure: (error): Outcome => ({ kind: "failed", error, started: begun !== undefined })
        })
      )
    })
  }

  /** The outcome, and the time it took on the test's clock. */
  timed(model: string, options: Parameters<Scripted["request"]>[1] = {}) {
    return Effect.gen({ self: this }, function*() {
      const from = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(
        Effect.flatMap(
          this.request(model, options),
          (outcome) => Effect.map(Clock.currentTimeMillis, (now) => ({ outcome, tookMs: now - from }))
        )
      )
      yield* TestClock.adjust("2 minutes")
      return yield* Fiber.join(fiber)
    })
  }

  #receive(call: Call, sink: Sink): Effect.Effect<Usage | undefined, JobError> {
    const name = `${call.endpoint.name}/${call.endpoint.model}`
    return Effect.flatMap(Clock.currentTimeMillis, (at) => {
      this.received.push({ name, at, tenant: call.tenant, answersAs: call.answersAs })
      const answer = this.#once.get(name)?.shift() ?? this.#script.get(name) ?? answers()
      return answer(call, sink)
    })
  }
}
