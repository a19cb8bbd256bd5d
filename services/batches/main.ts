/** Starts the batch service. */
import * as Service from "../../shared/process/Service.ts"
import * as BatchService from "./BatchService.ts"

Service.run("batches", BatchService.layer)
