/** A video worker on a simulated machine: the shipped life of a task, with a simulated provider. */
import { Effect, Layer } from "effect"
import * as VideoWorker from "../../../services/video/VideoWorker.ts"
import { Presence } from "../../../shared/bus/provision/Presence.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { LocalVideoEngine } from "../../../shared/provider/call/VideoEngine.ts"
import type { Cluster } from "../nats/Cluster.ts"
import { layerOf } from "./Catalogue.ts"
import { GatewayProcess, surroundings } from "./Processes.ts"
import { providerTools } from "./Tools.ts"
import { studioName, type VideoStudio } from "./VideoStudio.ts"
import type { World } from "../world/World.ts"

const catalogue = layerOf(
  { [studioName]: { protocol: "local", idempotent: false, limits: { concurrency: 4 } } },
  { video: { workload: "video", targets: [{ provider: studioName }] } }
)

export class VideoProcess extends GatewayProcess {
  readonly #studio: VideoStudio

  constructor(world: World, cluster: Cluster, name: string, studio: VideoStudio) {
    super(world, cluster, name)
    this.#studio = studio
  }

  readonly run = () =>
    Effect.runFork(
      this.serve.pipe(
        Effect.provide(
          VideoWorker.layer.pipe(
            Layer.provide([
              Layer.succeed(LocalVideoEngine, this.#studio.engine(this.machine)),
              providerTools,
              catalogue,
              Presence.layer
            ]),
            Layer.provide(Nats.layerPatient),
            Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, { WORKER_SLOTS: "3" }))
          )
        )
      )
    )
}
