/** How every service of the gateway is run: with telemetry, until SIGTERM or SIGINT, and not longer than its supervisor. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Config, Effect, Exit, Layer, Logger, Runtime, Schema } from "effect"
import { setFlagsFromString } from "node:v8"
import { ServiceName } from "../telemetry/ServiceName.ts"
import * as Telemetry from "../telemetry/Telemetry.ts"
import { complaint } from "./Complaint.ts"
import * as Vitals from "./Vitals.ts"

/** The process that started this one is gone. */
class SupervisorGone extends Schema.TaggedError<SupervisorGone>()("SupervisorGone", {}) {
  override get message() {
    return "the process that started it is gone"
  }
}

/**
 * With `GATEWAY_PARENT_PIPE=1` standard input is a pipe whose other end the local supervisor holds: that it closes means
 * that the supervisor has died without a word.
 */
const supervisorGone = Effect.gen(function*() {
  const watched = yield* Config.Boolean("GATEWAY_PARENT_PIPE").pipe(Config.withDefault(false))
  if (!watched) return yield* Effect.never
  return yield* Effect.callback<never, SupervisorGone>((resume) => {
    process.stdin.on("end", () => resume(Effect.fail(new SupervisorGone())))
    process.stdin.resume()
  })
})

/** A service that was told to end, and did, has not failed: exit code 0, where Effect's own default is 130. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)

/** Why the service ends, in one line of the log; with a trace only where the program itself is at fault. */
const tellEnd = (name: string) => (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const why = `${name} ends: ${complaint(Cause.squash(cause))}`
  return (Cause.hasDies(cause) ? Effect.logError(why, cause) : Effect.logError(why)).pipe(
    // that of the service is not there before it has started
    Effect.provide(Logger.layer([Logger.consoleJson]))
  )
}

/**
 * Sends a batch as it is, where `fetch` would first make a stream of copies of it. Over `node:http`, which every service has
 * loaded already: undici would take most of them 50 ms more to start.
 */
const client = NodeHttpClient.layerNodeHttpOptions({ keepAlive: true })

const telemetry = (name: string) => Telemetry.layer(name).pipe(Layer.provide(client))

/**
 * Has buffers counted as part of the heap. V8 would else look through its whole heap after every 64 MB of them, though nearly
 * all are dead by then: where answers are large that was two thirds of what a service does. And lets the heap grow fourfold
 * until it looks again, which is what V8 does of itself where there are gigabytes; in a container's half of one it looks
 * after less than twice.
 */
const countBuffers = () => {
  setFlagsFromString("--external-memory-accounted-in-global-limit")
  setFlagsFromString("--heap-growing-percent=300")
}

/** Builds the service and keeps it up. A failure to start is one line in the log and exit code 1. */
export const run = <E>(name: string, layer: Layer.Layer<never, E>): void => {
  countBuffers()
  const whole = Layer.merge(layer, Vitals.layer).pipe(
    Layer.provide([telemetry(name), Layer.succeed(ServiceName, name)])
  )
  const service = Layer.launch(whole)
  NodeRuntime.runMain(
    Effect.raceFirst(service, supervisorGone).pipe(Effect.tapCause(tellEnd(name))),
    { disableErrorReporting: true, teardown }
  )
}
