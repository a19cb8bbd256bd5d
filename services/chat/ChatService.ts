/** The worker of the chat workload: its slots and its built-in engine. */
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as State from "./state/State.ts"

export const layer = WorkerService.layer({
  workload: "chat",
  slots: 64,
  engines: Engine.layer,
  preparation: State.layer
})
