/** The worker of the chat workload with its built-in engine. */
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as State from "./state/State.ts"

export const layer = WorkerService.layer({
  workload: "chat",
  engines: Engine.layer,
  preparation: State.layer
})
