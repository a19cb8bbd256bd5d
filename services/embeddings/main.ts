/** Starts a worker of the embeddings workload. */
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as Engine from "./Engine.ts"

Service.run("embeddings", WorkerService.layer({ workload: "embeddings", slots: 16, engines: Engine.layer }))
