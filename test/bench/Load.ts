/** One round of load on one stack: the rate and times of its answers, and the CPU time of each process. */
import { Effect, FileSystem, Path, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { BenchFailed, cpuMicros } from "./Processes.ts"
import type { Figure, Row, StackName } from "./Rows.ts"
import type { Ground, Role, Stack } from "./Stacks.ts"

const Result = Schema.fromJsonString(Schema.Struct({
  answers: Schema.Int,
  /** Answers other than 2xx, and broken, refused or timed out connections. */
  failures: Schema.Int,
  seconds: Schema.Finite,
  p50Millis: Schema.Finite,
  p99Millis: Schema.Finite
}))
const decodeResult = Schema.decodeUnknownEffect(Result)

export interface Round extends Readonly<Record<Figure, number>> {
  readonly stack: StackName
  readonly row: string
  readonly p99Millis: number
  /** CPU time per answer by process, in microseconds. */
  readonly cpuOf: Readonly<Record<Role, number>>
}

export type Generator = "wrk" | "own"

/** The load generator: wrk if it is installed, otherwise `Generator.ts`. */
export const findGenerator: Effect.Effect<Generator, never, ChildProcessSpawner.ChildProcessSpawner> = Effect.gen(
  function*() {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    return yield* spawner.string(ChildProcess.make("wrk", ["-v"])).pipe(
      Effect.match({ onSuccess: () => "wrk" as const, onFailure: () => "own" as const })
    )
  }
)

const byRole = <A>(of: (role: Role) => A): Record<Role, A> => ({
  ingress: of("ingress"),
  worker: of("worker"),
  nats: of("nats"),
  collector: of("collector"),
  provider: of("provider")
})

/** A request in the form that load.lua reads. */
export interface Request {
  readonly key: string
  readonly body: Row["body"]
}

export interface Load {
  readonly generator: Generator
  readonly ground: Ground
  readonly stack: Stack
  readonly row: Row
  /** Whole seconds. */
  readonly seconds: number
  /** Sent in turn. Default: the row's request, with the stack's key. */
  readonly requests?: ReadonlyArray<Request>
}

export const runRound = Effect.fn("Load.runRound")(function*(load: Load) {
  const { generator, ground, row, seconds, stack } = load
  const { requests = [{ key: stack.key, body: row.body }] } = load
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const file = (yield* Path.Path).join(ground.logs, "requests.txt")
  const lines = requests.map(({ body, key }) => `${key}\t${JSON.stringify(body)}\n`)
  yield* (yield* FileSystem.FileSystem).writeFileString(file, lines.join(""))
  const url = `${stack.url}${row.path}`
  const words = {
    wrk: [
      "wrk",
      ...["-t1", `-c${row.connections}`, `-d${seconds}s`, "--timeout", "10s", "-s", "test/bench/load.lua"],
      ...Object.entries(stack.headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]),
      url
    ],
    own: [process.execPath, "test/bench/Generator.ts", url, `${row.connections}`, `${seconds}`]
  }
  const pids = stack.pids(row.workload)
  const used = Effect.all(byRole((role) => cpuMicros(pids[role] ?? [])))
  const [command = "", ...args] = words[generator]
  const before = yield* used
  const output = yield* spawner.string(ChildProcess.make(command, args, {
    env: { LOAD_FILE: file, LOAD_HEADERS: JSON.stringify(stack.headers) },
    extendEnv: true
  }))
  const after = yield* used
  const { answers, failures, p50Millis, p99Millis, seconds: took } = yield* decodeResult(
    output.trim().split("\n").at(-1)
  )
  if (failures > 0 || answers === 0) {
    return yield* new BenchFailed({
      reason: `${stack.name}, ${row.name}: ${failures} failures and ${answers} answers; logs in ${ground.logs}`
    })
  }
  const cpuOf = byRole((role) => (after[role] - before[role]) / answers)
  return {
    stack: stack.name,
    row: row.name,
    rate: answers / took,
    p50Millis,
    p99Millis,
    cpuMicros: cpuOf.ingress + cpuOf.worker + cpuOf.nats,
    cpuOf
  } satisfies Round
})
