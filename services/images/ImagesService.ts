/** The worker of the images workload: its slots and its built-in engine. */
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as KeptResults from "./KeptResults.ts"

export const layer = WorkerService.layer({
  workload: "images",
  slots: 4,
  engines: Engine.layer,
  results: KeptResults.layer
})
