/** The worker of the speech workload with its built-in engine. */
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"

export const layer = WorkerService.layer({ workload: "speech", engines: Engine.layer })
