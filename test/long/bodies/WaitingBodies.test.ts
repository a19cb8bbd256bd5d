/** Requests that wait for the answer of a task: ingress does not keep their bodies, which it has stored and no longer counts. */
import { assert, it } from "@effect/vitest"
import { chat, events } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { inspect, inspectable } from "../../fixture/gateway/Inspector.ts"

const bodyBytes = 20_000_000

/** Requests that join the first one. */
const joins = 4

/** Reads the first event of an answer. Returns a function that reads the rest, and returns all. */
const begin = async (answer: Response): Promise<() => Promise<string>> => {
  assert.strictEqual(answer.status, 200)
  const pieces = events(answer)
  const all: Array<unknown> = [(await pieces.next()).value]
  return async () => {
    for await (const piece of pieces) all.push(piece)
    return all.join("\n")
  }
}

it.live(
  "requests with the same idempotency key do not hold their bodies while they wait for its answer",
  () =>
    Gateway.run({ environment: inspectable }, async (gateway) => {
      const { ingress, provider } = gateway
      // what a request takes from the limits of its key is returned when the response closes
      const { key } = await gateway.createKeyWith({ requestsPerMinute: 1_000 })
      const authorization = `Bearer ${key}`
      const small = await gateway.request(chat("free-chat"), { headers: { authorization } })
      assert.strictEqual(small.status, 200, await small.text())
      const { heapMb: before } = await inspect(ingress)
      provider.behave({ kind: "hold", after: 2 })
      const body = JSON.stringify(chat("free-chat", { stream: true, padding: "x".repeat(bodyBytes) }))
      const headers = { authorization, "idempotency-key": "report" }
      const waiting = []
      for (let each = 0; each <= joins; each++) waiting.push(await begin(await gateway.request(body, { headers })))
      const { heapMb: after } = await inspect(ingress)
      console.log(`${(after - before).toFixed(1)} MB more with ${waiting.length} requests of ${bodyBytes / 1e6} MB`)
      // half a body: neither the first request nor any other may keep its own
      assert.isBelow(after - before, bodyBytes / 2e6)
      provider.release()
      const texts = await Promise.all(waiting.map((rest) => rest()))
      assert.lengthOf(new Set(texts), 1)
      assert.match(texts[0] ?? "", /\n\[DONE\]$/)
    }),
  120_000
)
