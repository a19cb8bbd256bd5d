/** Starts a worker of the rerank workload. */
import * as Service from "../../shared/process/Service.ts"
import * as RerankService from "./RerankService.ts"

Service.run("rerank", RerankService.layer)
