/**
 * `npm run bench:start`: measures the time from the start of an installed `npm start`, and of each service, until it is ready.
 * Writes start.md. Starts each once before that, to build the web app and fill the cache of compiled modules.
 *
 * BENCH_ROWS (default all; prefixes of "npm start" and of services' names), BENCH_ROUNDS (5), BENCH_RESULTS and NATS_SERVER as
 * for `npm run bench`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Duration, Effect, FileSystem, Layer, Path } from "effect"
import { HttpClientRequest } from "effect/http"
import { bundleServices } from "../../fixture/gateway/Bundles.ts"
import { median } from "../Median.ts"
import { answers, cpuMicros, freePort, start, startService, untilLogged } from "../Processes.ts"
import { machine, publish, table } from "../Results.ts"
import { settings } from "../Settings.ts"
import { makeLogs, startNats } from "../Stacks.ts"

/** The interval between two checks for readiness: the precision of the figures. */
const checkInterval = Duration.millis(10)

/** The targets, in milliseconds. */
const targets = { service: 1_000, npmStart: 5_000 }

/** Starts the whole gateway in its own folder. */
const npmStart = Effect.fn("startup.npmStart")(function*(logs: string) {
  const path = yield* Path.Path
  const program = yield* start(logs, "npm-start", ["npm", "start"], {
    GATEWAY_DATA: path.join(logs, "data"),
    GATEWAY_PORT: `${yield* freePort}`,
    CONSOLE_PORT: `${yield* freePort}`
  })
  yield* untilLogged(program, /^ready /m, checkInterval)
  return undefined
})

const service = Effect.fn("startup.service")(function*(logs: string, natsUrl: string, name: string) {
  const port = `${yield* freePort}`
  const healthPort = `${yield* freePort}`
  const program = yield* startService(logs, name, name, {
    NATS_URL: natsUrl,
    GATEWAY_CONFIG: "deploy/local/gateway.yaml",
    GATEWAY_SECRET: "only for this measurement on this machine",
    CONSOLE_ADMIN_TOKEN: "only for this measurement",
    CONSOLE_GATEWAY_URL: "http://127.0.0.1:8080",
    PORT: port,
    HEALTH_PORT: healthPort
  })
  yield* answers(program, HttpClientRequest.get(`http://127.0.0.1:${healthPort}/readyz`), { every: checkInterval })
  return program.pid
})

/** The long-running services; `admin` holds commands. */
const serviceNames = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const names = (yield* fs.readDirectory("services")).toSorted().filter((name) => name !== "admin")
  return yield* Effect.filter(names, (name) => fs.exists(`services/${name}/main.ts`))
})

interface Start {
  readonly millis: number
  /** CPU time until ready, in milliseconds. The machine's other load hardly changes it. */
  readonly cpuMillis: number | undefined
}

/** Starts and stops a process several times, and leaves out the first. `starting` returns the pid. */
const starts = <E, R>(starting: Effect.Effect<number | undefined, E, R>, rounds: number) =>
  Effect.timed(starting).pipe(
    Effect.flatMap(([took, pid]) =>
      Effect.map(pid === undefined ? Effect.undefined : cpuMicros([pid]), (micros): Start => ({
        millis: Duration.toMillis(took),
        cpuMillis: micros === undefined ? undefined : micros / 1_000
      }))
    ),
    Effect.scoped,
    Effect.replicateEffect(1 + rounds),
    Effect.map((all) => all.slice(1))
  )

const seconds = (millis: number) => `${(millis / 1_000).toFixed(2)} s`

const row = (name: string, all: ReadonlyArray<Start>, limit: number) => {
  const millis = all.map(({ millis }) => millis)
  const cpuMillis = all.flatMap(({ cpuMillis }) => cpuMillis ?? [])
  return [
    name,
    seconds(median(millis)),
    `${seconds(Math.min(...millis))} to ${seconds(Math.max(...millis))}`,
    `< ${seconds(limit)}`,
    median(millis) < limit ? "yes" : "**no**",
    cpuMillis.length === 0 ? "" : seconds(median(cpuMillis))
  ]
}

const startup = Effect.gen(function*() {
  const { isWanted, natsServer, results, rounds } = yield* settings({ rounds: 5, stacks: [] })
  yield* Effect.promise(bundleServices)
  const logs = yield* makeLogs
  const nats = yield* startNats({ logs, natsServer }, "startup")
  const measured = [
    { name: "npm start", starts: starts(npmStart(logs), rounds), limit: targets.npmStart },
    ...(yield* serviceNames).map((name) => ({
      name,
      starts: starts(service(logs, nats.url, name), rounds),
      limit: targets.service
    }))
  ]
  const lines: Array<ReadonlyArray<string>> = []
  for (const { limit, name, starts } of measured.filter(isWanted)) {
    const all = yield* starts
    yield* Console.log(`${name}: ${all.map(({ millis }) => seconds(millis)).join(", ")}`)
    lines.push(row(name, all, limit))
  }
  yield* publish(
    results,
    "start.md",
    [
      "# Time from start to ready",
      "",
      `${yield* machine}; ${rounds} starts of each, one after another, after a first one that does not count; medians.`,
      "",
      ...table(["process", "ready after", "range", "target", "met", "CPU time until ready"], lines),
      ""
    ].join("\n")
  )
}).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(startup)
