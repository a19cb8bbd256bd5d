/**
 * The speech synthesiser espeak-ng, by its WebAssembly package. It always runs in processes of its own, because it is
 * licensed under the GPL and the gateway is not: it gets text and answers with samples, nothing else.
 *
 * One process is always there, because a start takes the better part of a second; more are started under load and ended
 * when they have been idle for a while. One that dies or hangs is replaced, and another one says its utterance.
 */
import { Context, Effect, Layer, Pool, Schema, type Scope } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { Answer, Request } from "./espeak-child.ts"

/** Samples in a second of what it makes. */
export const espeakRate = 22_050

/** One utterance and how it is said. */
export interface Saying {
  readonly text: string
  /** A language, by espeak-ng's names. */
  readonly language: string
  /** A voice variant, by espeak-ng's names. */
  readonly variant: string
  /** 0 to 99. */
  readonly pitch: number
  /** 80 to 450: espeak-ng's own range. */
  readonly wordsPerMinute: number
}

/** The synthesiser could not be run, died, or did not answer in time. */
export class EspeakFailed extends Schema.TaggedError<EspeakFailed>()("EspeakFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `espeak-ng ${this.detail}`
  }
}

export class Espeak extends Context.Service<Espeak, {
  /** The whole sound of an utterance: mono, at `espeakRate`. Few utterances are made at once; others wait. */
  readonly say: (saying: Saying) => Effect.Effect<Int16Array, EspeakFailed>
}>()("services/speech/Espeak") {}

/** How long one utterance may take to make, on however slow a machine. */
const patience = "60 seconds"
const startWithin = "60 seconds"
const idleFor = "1 minute"

/** `processes`: how many utterances are made at once. */
export const layer = (processes: number) =>
  Layer.effect(
    Espeak,
    Effect.gen(function*() {
      const run = Effect.runForkWith(yield* Effect.context())
      const pool: Pool.Pool<Child, EspeakFailed> = yield* Pool.makeWithTTL({
        acquire: start((child) => run(Pool.invalidate(pool, child))),
        min: 1,
        max: processes,
        timeToLive: idleFor
      })
      return Espeak.of({
        say: (saying) =>
          Pool.use(pool, (child) =>
            child.say(saying).pipe(
              Effect.timeoutOrElse({
                duration: patience,
                orElse: () =>
                  Effect.andThen(
                    Pool.invalidate(pool, child),
                    Effect.fail(new EspeakFailed({ detail: "did not answer in time" }))
                  )
              })
            )).pipe(Effect.retry({ times: 1 }))
      })
    })
  )

/** Starts a child and waits until it can speak. Calls `onDeath` when it ends by itself. */
const start = Effect.fnUntraced(
  function*(onDeath: (child: Child) => void): Effect.fn.Return<Child, EspeakFailed, Scope.Scope> {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        new Child(
          fork(join(import.meta.dirname, "espeak-child.ts"), [], {
            // of the worker's environment it needs nothing, least of all the providers' keys
            env: {},
            execArgv: [],
            serialization: "advanced",
            stdio: ["ignore", "ignore", "inherit", "ipc"]
          }),
          onDeath
        )
      ),
      (child) => Effect.sync(() => child.kill())
    )
    yield* child.ready.pipe(Effect.timeoutOrElse({
      duration: startWithin,
      orElse: () => Effect.fail(new EspeakFailed({ detail: "did not start in time" }))
    }))
    return child
  }
)

const ready = { id: "ready", samples: new Int16Array(0) } as const

class Child {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number | "ready", (result: Effect.Effect<Int16Array, EspeakFailed>) => void>()
  #death: EspeakFailed | undefined
  #sent = 0

  constructor(process: ChildProcess, onDeath: (child: Child) => void) {
    this.#process = process
    const died = (how: string) => {
      if (this.#death !== undefined) return
      this.#death = new EspeakFailed({ detail: how })
      // first of all, so that a retry does not get this one
      onDeath(this)
      for (const resume of this.#waiting.values()) resume(Effect.fail(this.#death))
      this.#waiting.clear()
    }
    process.on("exit", (code, signal) => died(`died (${signal ?? `exit code ${code}`})`))
    process.on("error", () => died("could not be run"))
    process.on("message", (answer: Answer) => {
      const { id, samples } = answer === "ready" ? ready : answer
      const result = samples === undefined
        ? Effect.fail(new EspeakFailed({ detail: "has no such voice" }))
        : Effect.succeed(samples)
      this.#waiting.get(id)?.(result)
      this.#waiting.delete(id)
    })
  }

  readonly ready = this.#answerTo("ready")

  say(saying: Saying): Effect.Effect<Int16Array, EspeakFailed> {
    return Effect.suspend(() => {
      const id = this.#sent++
      const request: Request = { ...saying, id }
      if (this.#death === undefined) this.#process.send(request)
      return this.#answerTo(id)
    })
  }

  kill(): void {
    this.#process.kill("SIGKILL")
  }

  /** Drops an answer that comes after its request was interrupted: the child finishes its utterance. */
  #answerTo(id: number | "ready"): Effect.Effect<Int16Array, EspeakFailed> {
    return Effect.callback((resume) => {
      if (this.#death !== undefined) return resume(Effect.fail(this.#death))
      this.#waiting.set(id, resume)
      return Effect.sync(() => this.#waiting.delete(id))
    })
  }
}
