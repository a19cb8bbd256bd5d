/**
 * The metrics of waiting and running video tasks, by which their workers are monitored and scaled. Every ingress reads the queues
 * when it starts and then every five seconds, which pass here on the test's clock.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Models } from "../../../shared/catalogue/Models.ts"
import { layerBoth } from "../../../shared/nats/Nats.ts"
import * as TaskCounts from "../../../services/ingress/routes/TaskCounts.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import type { Service } from "../../fixture/gateway/Service.ts"
import { veryLongVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

/** An ingress's metrics of videos. */
const taskMetrics = async ({ healthUrl }: Service): Promise<string> =>
  [...(await (await fetch(`${healthUrl}/metrics`)).text()).matchAll(
    /^gateway_queue_tasks\{(workload="video".*)\} (\d+)$/gm
  )]
    .map(([, labels, count]) => `${labels} ${count}`).toSorted().join("\n")

const counts = (running: number, waiting: number): string =>
  `workload="video",pool="default",state="running" ${running}\nworkload="video",pool="default",state="waiting" ${waiting}`

describe("the number of tasks", () => {
  it.effect("is reported even without a worker, but not while the queue cannot be read", () =>
    Effect.gen(function*() {
      const gateway = yield* Gateway.makeHere({ workers: 0 })
      const environment = { NATS_URL: gateway.nats.url, GATEWAY_CONFIG: gateway.catalogueFile }
      yield* Layer.build(
        TaskCounts.layer.pipe(
          Layer.provide([Models.layer, layerBoth]),
          Layer.provide([NodeServices.layer, ConfigProvider.layer(ConfigProvider.fromUnknown(environment))])
        )
      )
      const untilReported = (expected: string) =>
        Effect.promise(() => taskMetrics(gateway.ingress)).pipe(
          Effect.tap((text) => text === expected ? Effect.void : TestClock.adjust("5 seconds")),
          Effect.repeat({ until: (text) => text === expected })
        )
      const client = new VideoClient(gateway)
      const create = () => client.create(veryLongVideo)
      const tasks = yield* Effect.promise(async () => [await create(), await create(), await create()])
      yield* untilReported(counts(0, 3))

      yield* Effect.promise(() => gateway.startWorker({ WORKER_SLOTS: "2" }, "video"))
      yield* untilReported(counts(2, 1))
      yield* Effect.promise(async () => {
        for (const id of tasks) await client.request(`/${id}`, { method: "DELETE" })
      })
      yield* untilReported(counts(0, 0))

      yield* Effect.promise(() => gateway.nats.kill())
      yield* untilReported("")
      yield* Effect.promise(() => gateway.nats.restart())
      yield* untilReported(counts(0, 0))
    }))
})
