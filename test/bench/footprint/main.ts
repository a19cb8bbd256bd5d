/**
 * `npm run bench:footprint`: measures the memory and CPU time of every process of `npm start`: idle, and under JSON at 64
 * connections. Writes footprint.md.
 *
 * BENCH_SECONDS (60, for how long it idles), BENCH_WARM_UP (25, seconds of load, twice: the console's CPU time is that of the second
 * time), BENCH_RESULTS and NATS_SERVER as for `npm run bench`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path, Redacted, Schedule } from "effect"
import { generateSecret } from "../../../shared/keys/ApiKey.ts"
import { findGenerator, runRound } from "../Load.ts"
import { freePort, start, untilLogged } from "../Processes.ts"
import { machine, publish, table } from "../Results.ts"
import { settings } from "../Settings.ts"
import { answersChat, catalogueOf, firstRow, startGround } from "../Stacks.ts"
import type { Stack } from "../Stacks.ts"
import { type Footprint, footprint, processesOf } from "./Footprint.ts"

/** The targets: the memory of all processes in MB, their CPU time in per cent of a core, and the console's per answer in µs. */
const targets = {
  idleMegabytes: 850,
  workerMegabytes: 95,
  ingressMegabytes: 105,
  idlePercent: 1,
  loadMegabytes: 1_200,
  consoleMicros: 15
}

const workers = ["chat", "embeddings", "images", "rerank", "speech", "video"]

const total = (all: ReadonlyArray<Footprint>): Pick<Footprint, "megabytes" | "cpuMillis"> => ({
  megabytes: all.reduce((sum, { megabytes }) => sum + megabytes, 0),
  cpuMillis: all.reduce((sum, { cpuMillis }) => sum + cpuMillis, 0)
})

const percent = (cpuMillis: number, seconds: number) => `${(cpuMillis / seconds / 10).toFixed(2)} %`

const bench = Effect.gen(function*() {
  const { natsServer, results, seconds, warmUp } = yield* settings({ rounds: 1, seconds: 60, stacks: [] })
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const ground = yield* startGround(natsServer)
  const catalogue = path.join(ground.logs, "gateway.yaml")
  yield* fs.writeFileString(catalogue, catalogueOf(ground, [{ name: firstRow.body.model, workload: "chat" }]))
  const port = yield* freePort
  const key = Redacted.value(yield* generateSecret("sk-gw-"))
  const program = yield* start(ground.logs, "npm-start", ["npm", "start"], {
    GATEWAY_CONFIG: catalogue,
    GATEWAY_DATA: path.join(ground.logs, "data"),
    GATEWAY_PORT: `${port}`,
    CONSOLE_PORT: `${yield* freePort}`,
    GATEWAY_BOOTSTRAP_KEY: key,
    PROVIDER_KEY: "x"
  })
  yield* untilLogged(program, /^ready /m)

  const before = yield* processesOf(program.pid)
  yield* Effect.sleep(`${seconds} seconds`)
  const idle = yield* footprint(program.pid, before)

  const stack: Stack = {
    name: "gateway",
    url: `http://127.0.0.1:${port}`,
    headers: {},
    key,
    pids: () => ({ collector: idle.filter(({ name }) => name === "console").map(({ pid }) => pid) })
  }
  yield* answersChat(program, stack)
  const beforeLoad = yield* processesOf(program.pid)
  let loaded: ReadonlyArray<Footprint> = []
  const load = runRound({ generator: yield* findGenerator, ground, stack, row: firstRow, seconds: warmUp })
  const { cpuOf } = yield* footprint(program.pid, beforeLoad).pipe(
    Effect.tap((now) => Effect.sync(() => loaded = total(now).megabytes > total(loaded).megabytes ? now : loaded)),
    Effect.repeat(Schedule.spaced("1 second")),
    Effect.andThen(Effect.never),
    Effect.raceFirst(Effect.andThen(load, load))
  )

  const most = (all: ReadonlyArray<Footprint>, names: ReadonlyArray<string>) =>
    Math.max(...all.filter(({ name }) => names.includes(name)).map(({ megabytes }) => megabytes))
  const target = (what: string, value: number, bound: number, unit: string) => [
    what,
    `≤ ${bound} ${unit}`,
    `${value.toFixed(unit === "%" ? 2 : 0)} ${unit}`,
    value <= bound ? "yes" : "**no**"
  ]
  const byName = new Map(loaded.map((each) => [each.name, each]))
  yield* publish(
    results,
    "footprint.md",
    [
      "# Memory and idle CPU time of `npm start`",
      "",
      `${yield* machine}; ${seconds} s idle after the start, then twice ${warmUp} s of ${firstRow.name}. Memory is the proportional `
      + "set size, which divides shared pages among their users; under load it is the highest of each second.",
      "",
      ...table(["figure", "target", "measured", "met"], [
        target("all processes, idle", total(idle).megabytes, targets.idleMegabytes, "MB"),
        target("the largest worker, idle", most(idle, workers), targets.workerMegabytes, "MB"),
        target("ingress, idle", most(idle, ["ingress"]), targets.ingressMegabytes, "MB"),
        target(`all processes, ${firstRow.name}`, total(loaded).megabytes, targets.loadMegabytes, "MB"),
        target(
          "CPU time of all processes, idle, of a core",
          total(idle).cpuMillis / seconds / 10,
          targets.idlePercent,
          "%"
        ),
        target(`CPU time of the console per answer, ${firstRow.name}`, cpuOf.collector, targets.consoleMicros, "µs")
      ]),
      "",
      ...table(
        ["process", "memory, idle", "CPU time, idle", "memory, under load"],
        [...idle, { name: "together", ...total(idle) }].map(({ cpuMillis, megabytes, name }) => [
          name,
          `${megabytes.toFixed(0)} MB`,
          percent(cpuMillis, seconds),
          `${(name === "together" ? total(loaded) : byName.get(name))?.megabytes.toFixed(0) ?? "–"} MB`
        ])
      ),
      ""
    ].join("\n")
  )
}).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(bench)
