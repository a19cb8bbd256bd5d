/** The NATS server of a local start: the one at `NATS_URL`, or one started with JetStream. */
import { Console, Effect, FileSystem, Option, Path, Schema } from "effect"
import { connect } from "node:net"
import { type Environment, ofProgram } from "./Environment.ts"
import { freePort } from "../settings/Ports.ts"
import { commandLine, endProcess } from "./Processes.ts"
import { Settings, StartFailed } from "../settings/Settings.ts"
import { Supervisor } from "./Supervisor.ts"

/** The port at which commands look for NATS by default. */
const usualPort = 4222

const unusable = (server: string, why: string) =>
  new StartFailed({ detail: `The NATS server at ${server} ${why}: start one with JetStream there, or unset NATS_URL` })

/** The part of a server's `INFO` that matters here. */
const decodeInfo = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({
    server_name: Schema.optionalKey(Schema.String),
    jetstream: Schema.optionalKey(Schema.Boolean)
  }))
)

/** The first line from a NATS server: `INFO {…}`. */
const greeting = (host: string, port: number) =>
  Effect.callback<string, string>((resume) => {
    const socket = connect({ host, port })
    const finish = (outcome: Effect.Effect<string, string>) => {
      socket.destroy()
      resume(outcome)
    }
    let text = ""
    socket.setEncoding("utf8")
    socket.on("error", (error: NodeJS.ErrnoException) => finish(Effect.fail(`cannot be reached (${error.code})`)))
    socket.on("end", () => finish(Effect.fail("is not a NATS server")))
    socket.on("data", (data) => {
      text += data
      if (text.includes("\r\n")) finish(Effect.succeed(text.slice(0, text.indexOf("\r\n"))))
    })
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => Effect.fail("does not answer within 5 s") }))

/** Fails unless a NATS server with JetStream listens at this address. */
const requireJetStream = Effect.fn("Nats.requireJetStream")(
  function*(host: string, port: number) {
    const line = yield* greeting(host, port)
    const info = yield* decodeInfo(line.replace(/^INFO /, "")).pipe(Effect.mapError(() => "is not a NATS server"))
    if (info.jetstream !== true) return yield* Effect.fail("has no JetStream")
    return info.server_name
  },
  (effect, host, port) => Effect.mapError(effect, (reason) => unusable(`${host}:${port}`, reason))
)

/** Host and port of each server, without credentials. */
const addresses = (urls: string) =>
  urls.split(",").map((text) => {
    const { hostname, port } = new URL(text.includes("://") ? text.trim() : `nats://${text.trim()}`)
    return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? usualPort : Number(port) }
  })

const requireOneOf = Effect.fn("Nats.requireOneOf")(function*(urls: string) {
  const servers = yield* Effect.try({
    try: () => addresses(urls),
    catch: () =>
      new StartFailed({
        detail: "NATS_URL must be an address such as nats://127.0.0.1:4222, or several separated by commas"
      })
  })
  return yield* Effect.firstSuccessOf(servers.map(({ host, port }) => requireJetStream(host, port)))
})

/** Stops the nats-server of an earlier start that was killed, if it uses this store. */
const endLeftover = Effect.fn("Nats.endLeftover")(function*(pidFile: string, store: string) {
  const fs = yield* FileSystem.FileSystem
  const pid = Number(yield* fs.readFileString(pidFile).pipe(Effect.orElseSucceed(() => "0")))
  if (!(yield* commandLine(pid)).includes(store)) return
  yield* Console.log(`stopping the nats-server of an earlier start (process ${pid})`)
  yield* endProcess(pid)
})

/**
 * Settings of Go's garbage collector. The server keeps little and allocates a lot, so that the default would take a seventh of its
 * CPU time. With more than `GOMEMLIMIT` in its queues, it collects as often as by default.
 */
const memory = { GOGC: "400", GOMEMLIMIT: "2GiB" }

/** Whether the user's environment sets Go's garbage collector, which then counts. */
const ofUser = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => name in memory))

/**
 * JetStream's limits, those of `deploy/nats/nats.conf`. By default, the server takes three quarters of the machine's memory or, from 2.15
 * on, of `GOMEMLIMIT`, which is less than the streams of the workloads reserve.
 */
const limits = "jetstream { max_memory_store: 3GB, max_file_store: 20GB }\n"

/** Provides a NATS server until the scope closes, and returns its URL. */
export const startNats = Effect.gen(function*() {
  const { data, natsUrl } = yield* Settings
  if (Option.isSome(natsUrl)) {
    yield* requireOneOf(natsUrl.value)
    return natsUrl.value
  }
  const supervisor = yield* Supervisor
  const path = yield* Path.Path
  const store = path.join(data, "nats")
  const pidFile = path.join(data, "nats-server.pid")
  yield* endLeftover(pidFile, store)

  const port = yield* freePort(usualPort)
  // two starts may choose the same free port: the name tells the servers apart
  const name = `local-${process.pid}`
  const isOurs = Effect.filterOrFail(
    requireJetStream("127.0.0.1", port),
    (answering) => answering === name,
    () => unusable(`127.0.0.1:${port}`, "is another one")
  )
  const config = path.join(data, "nats.conf")
  yield* (yield* FileSystem.FileSystem).writeFileString(config, limits)
  const args = [
    ...["--config", config, "--addr", "127.0.0.1", "--port", String(port), "--server_name", name],
    ...["--jetstream", "--store_dir", store, "--pid", pidFile]
  ]
  const url = `nats://127.0.0.1:${port}`
  const advice = port === usualPort ? "" : `: set NATS_URL=${url} for \`npm run keys\` and other commands`
  yield* Console.log(`starting nats-server at 127.0.0.1:${port}${advice}`)
  const environment = { ...memory, ...ofProgram(process.env), ...ofUser(process.env) }
  const { ready } = yield* supervisor.supervise({
    name: "nats-server",
    stopWithin: "5 seconds",
    launch: Effect.succeed({ command: "nats-server", args, environment, endsWithInput: false, isReady: isOurs })
  })
  yield* ready
  return url
})
