/**
 * A worker of the previous release. It announces a slot and reads only version 2 of the protocol, so that ingress uses version 2
 * for all workers until it ends. It takes no jobs.
 */
import { Effect, Layer } from "effect"
import * as Subjects from "../../../shared/bus/protocol/Subjects.ts"
import * as Timings from "../../../shared/bus/protocol/Timings.ts"
import { encodeSlots } from "../../../shared/bus/fairness/Occupancy.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import type { Cluster } from "../nats/Cluster.ts"
import { GatewayProcess, surroundings } from "./Processes.ts"

/** How many jobs have been stored in version 2. */
export const formerJobsIn = ({ jetStream }: Cluster): number =>
  jetStream.streams.get(Subjects.jobStream("chat", 2))?.last ?? 0

export class FormerWorker extends GatewayProcess {
  readonly run = () => {
    const announce = Effect.gen(function*() {
      const { id, isConnected, outbox } = yield* Nats
      const say = (slots: number) =>
        Effect.sync(() => {
          if (isConnected()) outbox.publish(Subjects.slotsSubject("chat", "default", id, 2), encodeSlots(slots))
        })
      const saying = Effect.forever(Effect.andThen(say(1), Effect.sleep(Timings.announcementMs.every)))
      return yield* Effect.onInterrupt(saying, () => Effect.andThen(say(0), Effect.sleep(10)))
    })
    const layer = Nats.layerPatient.pipe(Layer.provideMerge(surroundings(this.world, this.machine, this.cluster, {})))
    return Effect.runFork(Effect.provide(announce, layer))
  }
}
