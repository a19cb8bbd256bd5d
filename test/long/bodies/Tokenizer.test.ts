/** What loading the tokenizer does to other work of its process. */
import { assert, it } from "@effect/vitest"
import { once } from "node:events"
import { Worker } from "node:worker_threads"

it("the tokenizer loads in several turns of the event loop, between which pings are answered", async () => {
  const worker = new Worker(new URL("../../fixture/calls/TokenizerLoad.ts", import.meta.url))
  const [{ longest, whole }] = await once(worker, "message") as [{ readonly longest: number; readonly whole: number }]
  await worker.terminate()
  assert.isBelow(longest, 0.8 * whole, `the longest turn took ${longest} of ${whole} ms`)
})
