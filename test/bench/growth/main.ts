/**
 * `npm run bench:growth`: measures the CPU time of a request as the gateway grows in keys, models, targets, messages and
 * workers, one after another, and whether it is flat or linear. Writes growth.md; takes about eight minutes.
 *
 * BENCH_ROWS (default all), BENCH_ROUNDS (3), BENCH_SECONDS, BENCH_WARM_UP, BENCH_RESULTS and NATS_SERVER as for `npm run
 * bench`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer } from "effect"
import type { Request, Round } from "../Load.ts"
import { findGenerator, runRound } from "../Load.ts"
import { machine, publish } from "../Results.ts"
import { again, settings } from "../Settings.ts"
import { firstRow, startGateway, startGround } from "../Stacks.ts"
import type { Point } from "./Page.ts"
import { page } from "./Page.ts"
import { series } from "./Series.ts"

const growth = Effect.gen(function*() {
  const { isWanted, natsServer, results, rounds: count, seconds, warmUp } = yield* settings({ rounds: 3, stacks: [] })
  const generator = yield* findGenerator
  const ground = yield* startGround(natsServer)
  const gateway = yield* startGateway(ground, { name: "gateway", workloads: ["chat"] })
  const run = (seconds: number, requests?: ReadonlyArray<Request>, times = 1) =>
    runRound({
      generator,
      ground,
      stack: gateway.stack,
      row: { ...firstRow, connections: times * firstRow.connections },
      seconds,
      ...(requests === undefined ? {} : { requests })
    })

  yield* run(warmUp)
  const points: Array<Point> = []
  for (const one of series.filter(isWanted)) {
    let before = 0
    let requests: ReadonlyArray<Request> = []
    for (const size of one.sizes) {
      requests = yield* one.grow(gateway, size, before, requests)
      before = size
      const times = one.startsProcesses === true ? size : 1
      yield* run(again(warmUp) * times, requests, times)
      const rounds: Array<Round> = []
      for (let round = 1; round <= count; round++) rounds.push(yield* run(seconds, requests, times))
      points.push({ series: one.name, size, rounds })
      yield* Console.log(`${size} ${one.name}: ${rounds.map(({ cpuMicros }) => cpuMicros.toFixed(0)).join(", ")} µs`)
    }
  }

  const about = `${yield* machine}; ${count} rounds of ${seconds} s after ${
    again(warmUp)
  } s of warm-up at each size, ${firstRow.connections} connections, for each worker; load from ${
    generator === "wrk" ? "wrk" : "test/bench/Generator.ts"
  } on the same machine.`
  yield* publish(results, "growth.md", page(about, series.filter(isWanted), points))
}).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(growth)
