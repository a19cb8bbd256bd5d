/** Starts a worker of the images workload. */
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"
import * as KeptResults from "./KeptResults.ts"

Service.run(
  "images",
  WorkerService.layer({ workload: "images", slots: 4, engines: Engine.layer, results: KeptResults.layer })
)
