/**
 * `npm run bench`: the gateway in full beside its floor, in alternating rounds of one run. Writes the report to
 * test/bench/results/latest.md. Fails where something failed, never for a figure.
 *
 * BENCH_STACKS (default "floor,gateway"), BENCH_ROUNDS (5), BENCH_SECONDS (4, whole seconds per round),
 * BENCH_WARM_UP (10, whole seconds per stack and load, discarded), NATS_SERVER (the nats-server program).
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, DateTime, Effect, FileSystem, Layer } from "effect"
import { availableParallelism, cpus } from "node:os"
import type { Round } from "./Load.ts"
import { findGenerator, runRound, scenarios } from "./Load.ts"
import { report } from "./Report.ts"
import { startFloor, startGateway, startGround } from "./Stacks.ts"

const settings = Config.all({
  stacks: Config.String("BENCH_STACKS").pipe(Config.withDefault("floor,gateway")),
  rounds: Config.Int("BENCH_ROUNDS").pipe(Config.withDefault(5)),
  seconds: Config.Int("BENCH_SECONDS").pipe(Config.withDefault(4)),
  warmUp: Config.Int("BENCH_WARM_UP").pipe(Config.withDefault(10)),
  natsServer: Config.String("NATS_SERVER").pipe(Config.withDefault("nats-server"))
})

const bench = Effect.gen(function*() {
  const { natsServer, rounds: count, seconds, stacks: names, warmUp } = yield* settings
  const fs = yield* FileSystem.FileSystem
  const generator = yield* findGenerator
  const ground = yield* startGround(natsServer)
  const stacks = [
    ...(names.includes("floor") ? [yield* startFloor(ground)] : []),
    ...(names.includes("gateway") ? [yield* startGateway(ground)] : [])
  ]

  const rounds: Array<Round> = []
  for (const scenario of scenarios) {
    for (const stack of stacks) yield* runRound(generator, ground, stack, scenario, warmUp)
    for (let round = 1; round <= count; round++) {
      for (const stack of stacks) {
        const result = yield* runRound(generator, ground, stack, scenario, seconds)
        rounds.push(result)
        yield* Console.log(
          `${scenario.name}, round ${round}, ${stack.name}: ${Math.round(result.rate)}/s, p50 ${result.p50Millis} ms`
        )
      }
    }
  }

  const about = `${DateTime.formatIso(yield* DateTime.now).slice(0, 10)}, ${availableParallelism()} cores of ${
    cpus()[0]?.model.trim() ?? "an unknown processor"
  }, Node ${process.versions.node}; ${count} rounds of ${seconds} s after ${warmUp} s of warm-up; load from ${
    generator === "wrk" ? "wrk" : "test/bench/Generator.ts"
  } on the same machine.`
  const text = report(about, scenarios, rounds)
  yield* Console.log(`\n${text}`)
  yield* fs.makeDirectory("test/bench/results", { recursive: true })
  yield* fs.writeFileString("test/bench/results/latest.md", text)
}).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(bench)
