/**
 * The speech synthesiser espeak-ng, from its WebAssembly package. It runs in a process of its own because it is licensed
 * under the GPL and the gateway is not: the process takes text and answers with samples.
 *
 * The process makes one utterance after another. It starts with the first one and ends when there was none for a while. If it dies
 * or hangs, a new one repeats the utterance.
 */
import { Context, Deferred, Effect, Exit, Layer, Pool, Schema } from "effect"
import { fork } from "node:child_process"
import { join } from "node:path"
import type { Answer, Request } from "./espeak-child.ts"

/** The sample rate of espeak-ng's output, in Hz. */
export const sampleRate = 22_050

/** One utterance. */
export interface Saying {
  readonly text: string
  /** A language and a voice variant, by espeak-ng's names. */
  readonly language: string
  readonly variant: string
  /** 0 to 99. */
  readonly pitch: number
  /** 80 to 450. */
  readonly wordsPerMinute: number
}

export class EspeakFailed extends Schema.TaggedError<EspeakFailed>()("EspeakFailed", { detail: Schema.String }) {
  override get message() {
    return `espeak-ng ${this.detail}`
  }
}

export class Espeak extends Context.Service<Espeak, {
  /** The whole sound of an utterance: mono, at `sampleRate`. */
  readonly say: (saying: Saying) => Effect.Effect<Int16Array, EspeakFailed>
}>()("services/speech/Espeak") {}

/** The time limit for a start and for an utterance, long enough for a slow machine. */
const patience = "60 seconds"

/** The process takes 70 MB, and half a second to start. */
const endsAfter = "5 minutes"

/** Starts the process and, once it is ready, returns a function that sends it requests. */
const start = Effect.gen(function*() {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      fork(join(import.meta.dirname, "espeak-child.ts"), [], {
        // nothing of the worker's environment, above all no provider keys
        env: {},
        execArgv: [],
        serialization: "advanced",
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const death = Deferred.makeUnsafe<never, EspeakFailed>()
  const fail = (detail: string) => Deferred.doneUnsafe(death, Exit.fail(new EspeakFailed({ detail })))
  child.on("exit", (code, signal) => fail(`died (${signal ?? `exit code ${code}`})`))
  child.on("error", () => fail("could not be run"))

  /** Sends a request, if any, and waits for the answer with this id. */
  const receive = (id: number, request?: Request): Effect.Effect<Answer, EspeakFailed> =>
    Effect.callback<Answer>((resume) => {
      const listen = (answer: Answer) => {
        if (answer.id !== id) return
        child.off("message", listen)
        resume(Effect.succeed(answer))
      }
      child.on("message", listen)
      if (request !== undefined) child.send(request)
      return Effect.sync(() => child.off("message", listen))
    }).pipe(
      Effect.raceFirst(Deferred.await(death)),
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.fail(new EspeakFailed({ detail: "did not answer in time" }))
      })
    )

  yield* receive(0)
  let asked = 0
  return (saying: Saying) => Effect.suspend(() => receive(++asked, { ...saying, id: asked }))
})

export const layer = Layer.effect(
  Espeak,
  Effect.gen(function*() {
    const processes = yield* Pool.makeWithTTL({ acquire: start, min: 0, max: 1, timeToLive: endsAfter })
    const ask = (saying: Saying) =>
      Pool.use(processes, (ask) => Effect.tapError(ask(saying), () => Pool.invalidate(processes, ask)))
    return Espeak.of({
      say: Effect.fnUntraced(function*(saying) {
        const { samples } = yield* Effect.retry(ask(saying), { times: 1 })
        return samples ?? (yield* new EspeakFailed({ detail: "has no such voice" }))
      })
    })
  })
)
