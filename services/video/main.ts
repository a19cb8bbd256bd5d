/** Starts a worker of the video workload. */
import { Layer } from "effect"
import * as Service from "../../shared/process/Service.ts"
import * as WorkerService from "../../shared/process/WorkerService.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { Upstream } from "../../shared/provider/Upstream.ts"
import * as LocalVideo from "./LocalVideo.ts"
import * as VideoWorker from "./VideoWorker.ts"

const worker = VideoWorker.layer.pipe(
  Layer.provide(LocalVideo.layer),
  Layer.provide([GuardedFetch.layer, Upstream.layer, WorkerService.sharedLimits])
)

Service.run("video", WorkerService.around(worker))
