/** Many large requests, one after another: a worker keeps none of their bodies. */
import { assert, it } from "@effect/vitest"
import { chat } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { residentMb } from "../../fixture/gateway/ProcessStatus.ts"

const picture = `data:image/png;base64,${"A".repeat(5 * 1024 * 1024)}`

/** A request of 5 MB. */
const large = (index: number) =>
  chat("free-chat", {
    messages: [{
      role: "user",
      content: [{ type: "text", text: `picture ${index}` }, { type: "image_url", image_url: { url: picture } }]
    }]
  })

it.live("requests of 5 MB leave a worker's memory after 140 as it was after 20", () =>
  Gateway.run({}, async (gateway) => {
    const memory = () => residentMb(gateway.workers[0]?.pid ?? 0)
    const send = async (count: number) => {
      for (let sent = 0; sent < count; sent += 4) {
        const answers = await Promise.all([0, 1, 2, 3].map((at) => gateway.request(large(sent + at))))
        for (const answer of answers) {
          assert.strictEqual(answer.status, 200)
          await answer.arrayBuffer()
        }
        gateway.provider.requests.length = 0
      }
    }
    await send(20)
    const after20 = await memory()
    await send(120)
    const after140 = await memory()
    console.info(`worker: ${after20.toFixed(0)} MB after 20 requests of 5 MB, ${after140.toFixed(0)} MB after 140`)
    // garbage collection is not immediate: 120 leaked requests would be 600 MB
    assert.isBelow(after140, after20 + 300)
  }))
