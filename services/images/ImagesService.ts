/** The worker of the images workload with its built-in engine. */
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as KeptResults from "./KeptResults.ts"

export const layer = WorkerService.layer({
  workload: "images",
  engines: Engine.layer,
  results: KeptResults.layer
})
