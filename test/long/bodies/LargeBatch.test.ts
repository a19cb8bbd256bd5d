/** The memory of the process that holds a large batch. `BATCH_LINES=50000` is the largest, and takes some minutes. */
import { assert, it } from "@effect/vitest"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { peakMb } from "../../fixture/gateway/ProcessStatus.ts"

const count = Number(process.env["BATCH_LINES"] ?? 2_000)
const mostMb = 150

it.live(
  "a large batch takes little memory of its holder",
  () =>
    Gateway.run({ environment: { WORKER_TASK_SLOTS: "32" } }, async (gateway) => {
      const client = new BatchClient(gateway)
      const holder = await gateway.startWorker({}, "batches")
      const before = await peakMb(holder.pid)
      const begun = performance.now()
      const { id } = await client.create("paid-chat", count)
      const batch = await client.ended(id, 3_000_000)
      const seconds = (performance.now() - begun) / 1_000
      assert.deepInclude(batch, { status: "completed", request_counts: { total: count, completed: count, failed: 0 } })
      await client.results(batch)
      const peak = await peakMb(holder.pid)
      console.log(
        `${count} requests in ${seconds.toFixed(0)} s; holder: ${peak.toFixed(0)} MB, ${before.toFixed(0)} MB before`
      )
      assert.isBelow(peak, mostMb)
    }),
  3_600_000
)
