/** How much longer interactive requests take while a batch runs. */
import { BatchClient } from "../fixture/batches/BatchClient.ts"
import { askChat, Load } from "../fixture/client/Load.ts"
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import { percentile } from "./Percentile.ts"

/** How long the provider takes for an answer, in milliseconds. */
const answerMs = 200

/** Interactive requests, measured before the batch and while it runs. */
const requests = 1_000
const perSecond = 50

/** More than the batch does meanwhile. */
const lines = 20_000

/** The 95th percentile of the time until an answer, in milliseconds. */
export const batchLatency = async (gateway: Gateway) => {
  gateway.provider.behave({ kind: "silent", forMs: answerMs })
  const client = new BatchClient(gateway)
  const p95 = async () => {
    const load = new Load(gateway, {
      clients: 100,
      patienceMs: 30_000,
      perSecond,
      ask: (_, id) => askChat("free-chat", id)
    })
    await load.untilWhole(requests, 0, 120_000)
    await load.stop()
    return percentile(load.entries.map(({ tookMs }) => tookMs), 0.95)
  }
  // warm-up of the new processes
  await client.ended((await client.create("paid-chat", 200)).id)
  await p95()
  const before = await p95()
  const { id } = await client.create("paid-chat", lines)
  await client.untilDone(id, 100)
  const during = await p95()
  const { request_counts: { completed }, status } = await client.cancel(id)
  if (status !== "cancelling") throw new Error(`the batch was over before: ${status}`)
  return { before, during, completed }
}
