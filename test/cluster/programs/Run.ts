/** Runs a program to its end, with its output and exit code as values. */
import { Effect, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export interface RunOptions {
  readonly cwd?: string
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Text for its standard input; nothing by default. */
  readonly input?: string
}

export interface Output {
  readonly stdout: string
  readonly stderr: string
}

/** The program ended with an error. */
export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  command: Schema.String,
  code: Schema.Int,
  stderr: Schema.String
}) {
  override get message() {
    return `${this.command} exited with ${this.code}:\n${this.stderr.trim()}`
  }
}

/** Fails with a `ProgramFailed` unless it exits with 0, and with a `PlatformError` if it cannot be started. */
export const run = Effect.fn("run")(function*(
  program: string,
  words: ReadonlyArray<string>,
  { cwd, env = {}, input }: RunOptions = {}
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(ChildProcess.make(program, words, {
    env: { ...env },
    extendEnv: true,
    stdin: input === undefined ? "ignore" : Stream.make(new TextEncoder().encode(input)),
    ...cwd === undefined ? {} : { cwd }
  }))
  const text = (stream: typeof child.stdout) => stream.pipe(Stream.decodeText(), Stream.mkString)
  const [stdout, stderr, code] = yield* Effect.all([text(child.stdout), text(child.stderr), child.exitCode], {
    concurrency: "unbounded"
  })
  if (code !== 0) {
    const command = [program.split("/").at(-1), ...words].join(" ")
    return yield* new ProgramFailed({ command, code, stderr: stderr.trim() === "" ? stdout : stderr })
  }
  return { stdout, stderr } satisfies Output
}, Effect.scoped)
