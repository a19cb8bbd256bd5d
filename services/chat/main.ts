/** Starts a worker of the chat workload. */
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as State from "./state/State.ts"

Service.run(
  "chat",
  WorkerService.layer({ workload: "chat", slots: 64, engines: Engine.layer, preparation: State.layer })
)
