/** How every service of the gateway is run: with telemetry, until SIGTERM or SIGINT, and not longer than its supervisor. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Config, Effect, Exit, Layer, Runtime, Schema } from "effect"
import { ServiceName } from "../telemetry/ServiceName.ts"
import * as Telemetry from "../telemetry/Telemetry.ts"
import * as Vitals from "./Vitals.ts"

/** The process that started this one is gone. */
class SupervisorGone extends Schema.TaggedError<SupervisorGone>()("SupervisorGone", {}) {}

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

/** Builds the service and keeps it up. A failure to start is one line in the log and exit code 1. */
export const run = <E>(name: string, layer: Layer.Layer<never, E>): void => {
  const whole = Layer.merge(layer, Vitals.layer).pipe(
    Layer.provide([Telemetry.layer(name), Layer.succeed(ServiceName, name)])
  )
  const service = Layer.launch(whole)
  NodeRuntime.runMain(
    Effect.raceFirst(service, supervisorGone).pipe(
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`${name} ends: ${Cause.squash(cause)}`)
      )
    ),
    { disableErrorReporting: true, teardown }
  )
}
