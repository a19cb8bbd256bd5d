/** The worker of the video workload with its built-in engine. */
import { Layer } from "effect"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import * as LocalVideo from "./LocalVideo.ts"
import * as VideoWorker from "./VideoWorker.ts"

const worker = VideoWorker.layer.pipe(
  Layer.provide(LocalVideo.layer),
  Layer.provide(WorkerService.layerProviderTools)
)

export const layer = WorkerService.layerProcess("video", worker)
