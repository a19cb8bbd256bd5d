/** Starts a worker of the video workload. */
import * as Service from "../../shared/process/Service.ts"
import * as VideoService from "./VideoService.ts"

Service.run("video", VideoService.layer)
