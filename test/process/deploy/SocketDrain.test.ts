/** WebSockets of an ingress that gets SIGTERM: none may keep it from stopping, and their answers are finished. */
import { assert, describe, it } from "@effect/vitest"
import { openSocket } from "../../fixture/sockets/SocketClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

const open = ({ key, url }: Gateway) => openSocket(url, { authorization: `Bearer ${key}` })

/** Opens a socket whose answer the provider holds after two events. */
const beginAnswer = async (gateway: Gateway) => {
  gateway.provider.behave({ kind: "hold", after: 2 })
  const client = await open(gateway)
  client.create({ model: "free-chat", input: "one two three four five", store: false })
  await eventually(
    async () => client.received.map(({ type }) => type),
    (types) => types.includes("response.output_text.delta")
  )
  return client
}

/** Sends SIGTERM; `exited` resolves with the exit, which it expects within 20 s. */
const terminate = ({ ingress }: Gateway) => {
  const exit = ingress.terminate()
  return {
    exited: async () => {
      await eventually(async () => ingress.hasExited, (hasExited) => hasExited)
      return exit
    }
  }
}

describe("a WebSocket of an ingress on SIGTERM", { timeout: 90_000 }, () => {
  it.live("is closed with 1001: immediately if it is idle, otherwise after its answer, and it starts no further one", () =>
    Gateway.run({}, async (gateway) => {
      const idle = await open(gateway)
      const busy = await beginAnswer(gateway)
      const { exited } = terminate(gateway)
      assert.strictEqual(await idle.closed(), 1001)
      busy.create({ input: "Say: late", stream_id: "late" })
      const [refused] = await busy.until()
      assert.deepInclude(refused, { type: "error", status: 503, stream_id: "late" })
      gateway.provider.release()
      const [, last] = await busy.until(2)
      assert.strictEqual(last?.type, "response.completed")
      assert.strictEqual(await busy.closed(), 1001)
      assert.strictEqual(await exited(), 0)
    }))

  it.live("gets an error for an answer that exceeds the grace period, is closed with 1001, and the request is logged", () =>
    Gateway.run({ environmentOf: (service) => service === "ingress" ? { GRACE_MS: "300" } : {} }, async (gateway) => {
      const busy = await beginAnswer(gateway)
      const { exited } = terminate(gateway)
      const [last] = await busy.until()
      assert.strictEqual(last?.type, "response.failed")
      assert.strictEqual(await busy.closed(), 1001)
      assert.strictEqual(await exited(), 0)
      assert.match(gateway.ingress.log, /"message":"request".*"operation":"responses".*"error":"Unavailable"/)
    }))
})
