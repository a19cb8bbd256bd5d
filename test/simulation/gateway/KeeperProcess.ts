/** The console's queue keeper on a simulated machine: recreates consumers that cannot deliver. */
import { Effect, Layer } from "effect"
import * as QueueKeeper from "../../../services/console/QueueKeeper.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { layerOf } from "./Catalogue.ts"
import { GatewayProcess, surroundings } from "./Processes.ts"

const target = { targets: [{ provider: "any" }] }
const catalogue = layerOf({}, { chat: { ...target, workload: "chat" }, video: { ...target, workload: "video" } })

export class KeeperProcess extends GatewayProcess {
  readonly run = () =>
    Effect.runFork(Effect.provide(
      Effect.never,
      QueueKeeper.layer.pipe(
        Layer.provide([catalogue, Nats.layerPatient]),
        Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, {}))
      )
    ))
}
