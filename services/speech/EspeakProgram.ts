/** espeak-ng as the program that is installed on the machine: one run for each utterance, text in, WAV out. */
import { Config, Effect, Layer, Option, Semaphore, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { Espeak, EspeakFailed, espeakRate, patience, type Saying } from "./Espeak.ts"
import { fromLittleEndian } from "./Samples.ts"

const program = "espeak-ng"
/** Of the WAV file that it writes. */
const headerBytes = 44
const rateOffset = 24

/** Nothing of the worker's environment is its business but where it finds itself and its data. */
const environment = Effect.gen(function*() {
  const path = yield* Config.option(Config.String("PATH"))
  const data = yield* Config.option(Config.String("ESPEAK_DATA_PATH"))
  return { PATH: Option.getOrUndefined(path), ESPEAK_DATA_PATH: Option.getOrUndefined(data) }
})

/** Whether there is such a program and it runs. */
export const isInstalled = Effect.gen(function*() {
  const { exitCode } = yield* ChildProcessSpawner.ChildProcessSpawner
  const options = { env: yield* environment, stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const
  return (yield* exitCode(ChildProcess.make(program, ["--version"], options))) === 0
}).pipe(
  Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.succeed(false) }),
  Effect.orElseSucceed(() => false)
)

const utf8 = new TextEncoder()

/** `processes`: how many utterances are made at once. */
export const layer = (processes: number) =>
  Layer.effect(
    Espeak,
    Effect.gen(function*() {
      const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
      const env = yield* environment
      const permits = yield* Semaphore.make(processes)

      const run = Effect.fnUntraced(function*({ language, pitch, text, variant, wordsPerMinute }: Saying) {
        const voice = ["-v", `${language}+${variant}`, "-p", String(pitch), "-s", String(wordsPerMinute)]
        const child = yield* spawn(ChildProcess.make(program, [...voice, "-b", "1", "--stdin", "--stdout"], {
          env,
          stdin: Stream.succeed(utf8.encode(plain(text))),
          stderr: "ignore",
          killSignal: "SIGKILL"
        }))
        const output = Buffer.concat(yield* Stream.runCollect(child.stdout))
        const code = yield* child.exitCode
        if (code !== 0) return yield* new EspeakFailed({ detail: `ended with exit code ${code}` })
        if (output.length < headerBytes || output.readUInt32LE(rateOffset) !== espeakRate) {
          return yield* new EspeakFailed({ detail: `did not make sound at ${espeakRate} Hz` })
        }
        return fromLittleEndian(output.subarray(headerBytes))
      }, Effect.scoped)

      return Espeak.of({
        say: (saying) =>
          run(saying).pipe(
            Effect.catchTag(
              "PlatformError",
              (error) => Effect.fail(new EspeakFailed({ detail: `could not be run (${error.reason._tag})` }))
            ),
            Effect.timeoutOrElse({
              duration: patience,
              orElse: () => Effect.fail(new EspeakFailed({ detail: "did not answer in time" }))
            }),
            Effect.retry({ times: 1 }),
            permits.withPermit
          )
      })
    })
  )

/** Text that stands between such brackets would be taken for phonemes. */
const plain = (text: string): string => text.replaceAll("[[", "[ [")
