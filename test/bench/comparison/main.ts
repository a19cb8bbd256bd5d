/**
 * `npm run bench`: measures the full gateway, its floor and peers in alternating rounds of one run. Writes the report and a
 * chart. A failed answer ends its row, and the command exits with an error after the other rows; a missed target is no error.
 *
 * BENCH_STACKS (default: all, see Rows.ts), BENCH_ROWS (default all; prefixes of their names, separated by
 * commas: "JSON at 64,SSE"), BENCH_ROUNDS (6), BENCH_SECONDS (4, whole seconds per round), BENCH_WARM_UP (60, discarded whole
 * seconds before the first row of each stack and workload; a fifth of it before each further row), BENCH_RESULTS (the folder,
 * test/bench/results), NATS_SERVER (the nats-server program).
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer } from "effect"
import { chart } from "./Chart.ts"
import type { Round } from "../Load.ts"
import { findGenerator, runRound } from "../Load.ts"
import { startLiteLlm } from "./LiteLlm.ts"
import { startPortkey } from "./Portkey.ts"
import { BenchFailed } from "../Processes.ts"
import { report } from "./Report.ts"
import { machine, publish } from "../Results.ts"
import type { Row, StackName } from "../Rows.ts"
import { rows, stackNames } from "../Rows.ts"
import { again, settings } from "../Settings.ts"
import type { Ground, Stack } from "../Stacks.ts"
import { startFloor, startGateway, startGround } from "../Stacks.ts"

/** The workloads to start for each gateway. */
const workloads = { gateway: ["chat", "embeddings", "images"], sampled: ["chat"], untraced: ["chat"] } as const

/** Discarded seconds before each round: while other stacks ran, caches and memory went cold. */
const leadIn = 1

const start = Effect.fn("bench.start")(function*(ground: Ground, name: Exclude<StackName, "unlimited">) {
  if (name === "floor") return [yield* startFloor(ground)]
  if (name === "portkey") return [yield* startPortkey(ground)]
  if (name === "litellm") return [yield* startLiteLlm(ground)]
  const { stack, unlimited } = yield* startGateway(ground, { name, workloads: workloads[name] })
  return name === "gateway" ? [stack, unlimited] : [stack]
})

const bench = Effect.gen(function*() {
  const { isWanted, natsServer, results, rounds: count, seconds, stacks: wanted, warmUp } = yield* settings({
    rounds: 6,
    warmUp: 60,
    stacks: stackNames
  })
  const generator = yield* findGenerator
  const measured = rows.filter(isWanted)
  const rounds: Array<Round> = []
  const missing = new Set<string>()
  const failures: Array<string> = []

  /** Starts the stacks in this order, and measures every row in this many rounds. */
  const pass = Effect.fn("bench.pass")(function*(names: ReadonlyArray<StackName>, count: number) {
    const ground = yield* startGround(natsServer)
    const stacks: Array<Stack> = []
    for (const name of names) {
      // starts with the gateway
      if (name === "unlimited") continue
      yield* start(ground, name).pipe(
        Effect.tap((started) => Effect.sync(() => stacks.push(...started.filter((one) => names.includes(one.name))))),
        Effect.catchTag("PeerMissing", ({ message }) => Effect.sync(() => missing.add(message)))
      )
    }
    // the two keys of a gateway, of which the second finds its processes busy until just now
    stacks.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
    /** The stacks and workloads that are warm: each has its own processes. */
    const warm = new Set<string>()
    const measure = Effect.fn("bench.measure")(function*(row: Row) {
      const able = stacks.filter(({ name }) => row.without?.includes(name) !== true)
      for (const stack of able) {
        const processes = `${stack.name} ${row.workload}`
        yield* runRound({ generator, ground, stack, row, seconds: warm.has(processes) ? again(warmUp) : warmUp })
        warm.add(processes)
      }
      for (let round = 1; round <= count; round++) {
        for (const stack of able) {
          yield* runRound({ generator, ground, stack, row, seconds: leadIn })
          const result = yield* runRound({ generator, ground, stack, row, seconds })
          rounds.push(result)
          yield* Console.log(
            `${row.name}, ${stack.name}: ${result.rate.toFixed(0)}/s, p50 ${result.p50Millis} ms, CPU ${
              result.cpuMicros.toFixed(0)
            } µs`
          )
        }
      }
    })
    for (const row of measured) {
      yield* measure(row).pipe(
        Effect.catchTag("BenchFailed", ({ message }) => Effect.sync(() => failures.push(message)))
      )
    }
  }, Effect.scoped)

  const names = stackNames.filter((name) => wanted.includes(name))
  // of two equal stacks, the one started first is a few per cent slower
  yield* pass(names, Math.ceil(count / 2))
  if (count > 1) yield* pass(names.toReversed(), Math.floor(count / 2))

  const text = report({
    about: [
      `${yield* machine}; ${count} rounds of ${seconds} s after ${warmUp} s of warm-up`,
      ...(count > 1 ? ["half of them by stacks started in the reverse order"] : []),
      `load from ${generator === "wrk" ? "wrk" : "test/bench/Generator.ts"} on the same machine.`
    ].join("; "),
    rows: measured,
    rounds,
    notes: [...missing, ...failures]
  })
  yield* publish(results, "latest.md", text, { "latest.svg": chart(measured, rounds) })
  if (failures.length > 0) return yield* new BenchFailed({ reason: failures.join("; ") })
}).pipe(Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(bench)
