/**
 * Starts the gateway on this machine, and stops it in order.
 *
 * Closing the scope stops everything in reverse: ingress, workers, nats-server, state folder. All checks that need no process come
 * first.
 */
import { Cause, Console, Effect, Option } from "effect"
import * as Catalogue from "../../shared/catalogue/Catalogue.ts"
import { startupMessage } from "../../shared/process/StartupMessage.ts"
import { banner } from "./Banner.ts"
import { ensureKey, readBootstrapKey } from "./data/BootstrapKey.ts"
import { claimDataFolder } from "./data/DataFolder.ts"
import { startNats } from "./processes/Nats.ts"
import { requirePort } from "./settings/Ports.ts"
import { startServices } from "./processes/Services.ts"
import { Settings, StartFailed } from "./settings/Settings.ts"
import { readAdminToken, readGatewaySecret } from "./data/SharedSecrets.ts"
import { buildWebApp, isConsoleThere } from "./processes/WebApp.ts"

const run = Effect.gen(function*() {
  const { catalogue: file, consolePort, port } = yield* Settings
  const abandoned = yield* claimDataFolder
  const hasConsole = yield* isConsoleThere
  if (hasConsole && consolePort === port) {
    return yield* new StartFailed({ detail: `CONSOLE_PORT and GATEWAY_PORT are both ${port}: set one to another port` })
  }
  yield* requirePort(port, "GATEWAY_PORT", abandoned)
  if (hasConsole) yield* requirePort(consolePort, "CONSOLE_PORT", abandoned)
  const catalogue = yield* Catalogue.load(file).pipe(
    Effect.mapError(({ mistakes }) => {
      const all = mistakes.map(({ line, message }) => line === null ? message : `line ${line}: ${message}`)
      return new StartFailed({ detail: `The catalogue ${file} (GATEWAY_CONFIG) cannot be used: ${all.join("; ")}` })
    })
  )
  const key = yield* readBootstrapKey
  const secret = yield* readGatewaySecret
  const token = yield* readAdminToken
  if (hasConsole) yield* buildWebApp
  const natsUrl = yield* startNats
  const services = yield* startServices({ natsUrl, secret, adminToken: token, hasConsole, catalogue })
  yield* Console.log(`starting ${services.names.join(", ")}`)
  const [, valid] = yield* Effect.all([services.ready, ensureKey(key, natsUrl)], { concurrency: "unbounded" })
  yield* Console.log(yield* banner(valid, catalogue, hasConsole ? Option.some(token) : Option.none()))
  return yield* Effect.never
})

/** Prints one line about what stopped the start, with a stack trace only for defects. */
export const report = (cause: Cause.Cause<Error>) =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.void
    : Console.error(Cause.hasDies(cause) ? Cause.pretty(cause) : `error: ${startupMessage(Cause.squash(cause))}`)

/**
 * The first Ctrl-C interrupts `start`, a second one ends this process and its children immediately. A closed terminal stops it too;
 * output then fails and is ignored.
 */
const handleSignals = Effect.sync(() => {
  let interrupts = 0
  process.on("SIGINT", () => {
    interrupts++
    if (interrupts === 2) process.exit(130)
  })
  process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))
  process.stdout.on("error", () => {})
  process.stderr.on("error", () => {})
})

export const start = handleSignals.pipe(
  Effect.andThen(run),
  Effect.tapCause(report),
  Effect.onInterrupt(() => Console.log("stopping (press Ctrl-C again to stop at once)")),
  Effect.scoped,
  Effect.onInterrupt(() => Console.log("stopped"))
)
