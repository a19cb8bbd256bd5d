/** Starts a worker of the video workload. */
import { Layer } from "effect"
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as LocalVideo from "./LocalVideo.ts"
import * as VideoWorker from "./VideoWorker.ts"

const worker = VideoWorker.layer.pipe(
  Layer.provide(LocalVideo.layer),
  Layer.provide(WorkerService.layerProviderTools)
)

Service.run("video", WorkerService.layerProcess(worker))
