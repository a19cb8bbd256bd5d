/** `npm start`: the whole gateway on this machine, until Ctrl-C. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { Settings } from "./settings/Settings.ts"
import { report, start } from "./Start.ts"
import { Supervisor } from "./processes/Supervisor.ts"

const environment = Supervisor.layer.pipe(
  Layer.provideMerge(Settings.layer.pipe(Layer.tapCause(report))),
  Layer.provideMerge(Layer.mergeAll(NodeServices.layer, FetchHttpClient.layer))
)

NodeRuntime.runMain(start.pipe(Effect.provide(environment)), {
  disableErrorReporting: true,
  // an interrupt is the normal end
  teardown: (exit, end) => end(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
})
