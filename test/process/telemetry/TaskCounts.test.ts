/** The metrics of waiting and running video tasks, by which their workers are monitored and scaled. */
import { describe, it } from "@effect/vitest"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway, type ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { veryLongVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

/** An ingress's metrics of videos. */
const taskMetrics = async ({ healthUrl }: ServiceProcess): Promise<string> =>
  [...(await (await fetch(`${healthUrl}/metrics`)).text()).matchAll(
    /^gateway_queue_tasks\{(workload="video".*)\} (\d+)$/gm
  )]
    .map(([, labels, count]) => `${labels} ${count}`).toSorted().join("\n")

const counts = (running: number, waiting: number): string =>
  `workload="video",pool="default",state="running" ${running}\nworkload="video",pool="default",state="waiting" ${waiting}`

describe("the number of tasks", () => {
  it.live(
    "is reported by every ingress, even without a worker, but not while the queue cannot be read",
    () =>
      Gateway.run({ ingresses: 2, workers: 0 }, async (gateway) => {
        const untilAllReport = (expected: string) =>
          Promise.all(
            gateway.ingresses.map((ingress) => eventually(() => taskMetrics(ingress), (text) => text === expected))
          )
        const client = new VideoClient(gateway)
        // they still run when ingress next reads the queues, which is every five seconds
        const create = () => client.create(veryLongVideo)
        const tasks = [await create(), await create(), await create()]
        await untilAllReport(counts(0, 3))

        await gateway.startWorker({ WORKER_SLOTS: "2" }, "video")
        await untilAllReport(counts(2, 1))
        for (const id of tasks) await client.request(`/${id}`, { method: "DELETE" })
        await untilAllReport(counts(0, 0))

        await gateway.nats.kill()
        await untilAllReport("")
        await gateway.nats.restart()
        await untilAllReport(counts(0, 0))
      }),
    90_000
  )
})
