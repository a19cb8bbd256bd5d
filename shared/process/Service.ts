/** Runs a service with telemetry until SIGTERM or SIGINT, or until its supervisor dies. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Config, Effect, Exit, Layer, Logger, Runtime, Schema } from "effect"
import { ServiceName } from "../telemetry/ServiceName.ts"
import * as Telemetry from "../telemetry/Telemetry.ts"
import { startupMessage } from "./StartupMessage.ts"
import * as ProcessMetrics from "./ProcessMetrics.ts"

class SupervisorGone extends Schema.TaggedError<SupervisorGone>()("SupervisorGone", {}) {
  override get message() {
    return "the process that started it died"
  }
}

/** Returns when the supervisor has died. With `GATEWAY_PARENT_PIPE=1` it holds the other end of standard input, which closes then. */
const supervisorGone = Effect.gen(function*() {
  const watched = yield* Config.Boolean("GATEWAY_PARENT_PIPE").pipe(Config.withDefault(false))
  if (!watched) return yield* Effect.never
  return yield* Effect.callback<never, SupervisorGone>((resume) => {
    process.stdin.on("end", () => resume(Effect.fail(new SupervisorGone())))
    process.stdin.resume()
  })
})

/** Exit code 0 after SIGTERM or SIGINT, where Effect's default is 130. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)

/** Logs, in one line, why the service ends; with a stack trace only for defects. */
const logEnd = (name: string) => (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const why = `${name} ends: ${startupMessage(Cause.squash(cause))}`
  return (Cause.hasDies(cause) ? Effect.logError(why, cause) : Effect.logError(why)).pipe(
    // the service's own logger does not exist if the service has not started
    Effect.provide(Logger.layer([Logger.consoleJson]))
  )
}

/**
 * The HTTP client for telemetry batches. Not `fetch`, which would copy them into a stream first. Uses `node:http`, which every service
 * loads anyway; undici would add 50 ms to the start of most.
 */
const client = NodeHttpClient.layerNodeHttpOptions({ keepAlive: true })

const telemetry = (name: string) => Telemetry.layer(name).pipe(Layer.provide(client))

/** The service with its telemetry and its name. */
export const whole = <E>(name: string, service: Layer.Layer<never, E>) =>
  Layer.merge(service, ProcessMetrics.layer).pipe(
    Layer.provide([telemetry(name), Layer.succeed(ServiceName, name)])
  )

/** Builds and runs the service. Logs a failure to start in one line and exits with 1. */
export const run = <E>(name: string, service: Layer.Layer<never, E>): void => {
  NodeRuntime.runMain(
    Effect.raceFirst(Layer.launch(whole(name, service)), supervisorGone).pipe(Effect.tapCause(logEnd(name))),
    { disableErrorReporting: true, teardown }
  )
}
