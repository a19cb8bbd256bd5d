/** Starts a worker of the speech workload. */
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"

Service.run("speech", WorkerService.layer({ workload: "speech", slots: 16, engines: Engine.layer }))
