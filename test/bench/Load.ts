/** One round of load against one stack: how many answers it gave, how fast, and what CPU each process spent on them. */
import { Effect, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { BenchFailed, cpuMicros } from "./Processes.ts"
import type { Ground, Stack } from "./Stacks.ts"
import { completion, key } from "./Stacks.ts"

/** A kind of load, and which of its figures is compared. */
export interface Scenario {
  readonly name: string
  readonly connections: number
  readonly stream: boolean
  readonly compares: "rate" | "latency"
  /** What the ratio of gateway to floor should be: at least this for a rate, at most this for a latency. */
  readonly target: number
}

export const scenarios: ReadonlyArray<Scenario> = [
  { name: "JSON, 64 connections", connections: 64, stream: false, compares: "rate", target: 0.5 },
  { name: "SSE, 64 connections", connections: 64, stream: true, compares: "rate", target: 0.7 },
  { name: "JSON, 1 connection", connections: 1, stream: false, compares: "latency", target: 1.7 }
]

const Result = Schema.fromJsonString(Schema.Struct({
  answers: Schema.Int,
  /** Answers other than 2xx, and broken, refused or timed out connections. */
  failures: Schema.Int,
  seconds: Schema.Finite,
  p50Millis: Schema.Finite,
  p99Millis: Schema.Finite
}))
const decodeResult = Schema.decodeUnknownEffect(Result)

const processes = ["ingress", "worker", "nats", "provider"] as const
export type ProcessName = typeof processes[number]

export interface Round {
  readonly stack: Stack["name"]
  readonly scenario: string
  /** Answers per second. */
  readonly rate: number
  readonly p50Millis: number
  readonly p99Millis: number
  /** CPU time per answer by process, in microseconds. */
  readonly cpuMicros: Readonly<Record<ProcessName, number>>
}

/** The load generator of this machine: wrk where it is installed, our own otherwise. */
export const findGenerator = Effect.gen(function*() {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  return yield* spawner.string(ChildProcess.make("wrk", ["-v"])).pipe(
    Effect.match({ onSuccess: () => "wrk" as const, onFailure: () => "own" as const })
  )
})

export const runRound = Effect.fn("Load.runRound")(function*(
  generator: "wrk" | "own",
  ground: Ground,
  stack: Stack,
  scenario: Scenario,
  seconds: number
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const [command, args] = generator === "wrk"
    ? ["wrk", ["-t1", `-c${scenario.connections}`, `-d${seconds}s`, "-s", "test/bench/load.lua", stack.url]] as const
    : [
      process.execPath,
      ["test/bench/Generator.ts", stack.url, `${scenario.connections}`, `${seconds}`]
    ] as const
  const used = Effect.all({
    ingress: cpuMicros(stack.ingress),
    worker: cpuMicros(stack.worker),
    nats: cpuMicros(ground.nats),
    provider: cpuMicros(ground.provider)
  })
  const before = yield* used
  const output = yield* spawner.string(ChildProcess.make(command, args, {
    env: { LOAD_KEY: key, LOAD_BODY: JSON.stringify(completion(scenario.stream)) },
    extendEnv: true
  }))
  const after = yield* used
  const result = yield* decodeResult(output.trim().split("\n").at(-1))
  if (result.failures > 0 || result.answers === 0) {
    return yield* new BenchFailed({
      reason:
        `${stack.name}, ${scenario.name}: ${result.failures} failures beside ${result.answers} answers, logs in ` +
        ground.logs
    })
  }
  const perAnswer = (name: ProcessName) => (after[name] - before[name]) / result.answers
  return {
    stack: stack.name,
    scenario: scenario.name,
    rate: result.answers / result.seconds,
    p50Millis: result.p50Millis,
    p99Millis: result.p99Millis,
    cpuMicros: {
      ingress: perAnswer("ingress"),
      worker: perAnswer("worker"),
      nats: perAnswer("nats"),
      provider: perAnswer("provider")
    }
  } satisfies Round
})
