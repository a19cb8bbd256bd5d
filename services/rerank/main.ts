/** Starts a worker of the rerank workload. */
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"

Service.run("rerank", WorkerService.layer({ workload: "rerank", slots: 16, engines: Engine.layer }))
