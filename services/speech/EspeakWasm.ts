/**
 * espeak-ng as its WebAssembly package, in child processes that are kept: starting one takes the better part of a second.
 * One is always there; more are started under load and ended when they have been idle for a while. One that dies or hangs is
 * replaced, and its utterance is said by another.
 */
import { Effect, Layer, Pool, type Scope } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { Answer, Request } from "./espeak-child.ts"
import { Espeak, EspeakFailed, patience, type Saying } from "./Espeak.ts"

const idleFor = "1 minute"
const startWithin = "60 seconds"

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

/** Starts a child and waits until it can speak. `onDeath` is told when it ends by itself. */
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
      // first of all, so that who tries again does not get this one
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

  /** An answer that nobody waits for any more is dropped when it comes: the child finishes its utterance. */
  #answerTo(id: number | "ready"): Effect.Effect<Int16Array, EspeakFailed> {
    return Effect.callback((resume) => {
      if (this.#death !== undefined) return resume(Effect.fail(this.#death))
      this.#waiting.set(id, resume)
      return Effect.sync(() => this.#waiting.delete(id))
    })
  }
}
