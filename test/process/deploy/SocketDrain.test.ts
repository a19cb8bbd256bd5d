/** WebSockets of an ingress that gets SIGTERM: none may keep it from stopping, and their answers are finished. */
import { assert, describe, it } from "@effect/vitest"
import { openSocket } from "../../fixture/sockets/SocketClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import type { ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"

const shared = sharedGateway()

const open = ({ url }: ServiceProcess) => openSocket(url, { authorization: `Bearer ${shared().key}` })

/** Opens a socket whose answer the provider holds after two events. */
const beginAnswer = async (ingress: ServiceProcess) => {
  shared().provider.behave({ kind: "hold", after: 2 })
  const client = await open(ingress)
  client.create({ model: "free-chat", input: "one two three four five", store: false })
  await eventually(
    async () => client.received.map(({ type }) => type),
    (types) => types.includes("response.output_text.delta")
  )
  return client
}

describe("a WebSocket of an ingress on SIGTERM", () => {
  it("is closed with 1001: immediately if it is idle, otherwise after its answer, and it starts no further one", async () => {
    const ingress = await startProcess(shared(), "ingress")
    const idle = await open(ingress)
    const busy = await beginAnswer(ingress)
    const exit = ingress.terminate()
    assert.strictEqual(await idle.closed(), 1001)
    busy.create({ input: "Say: late", stream_id: "late" })
    const [refused] = await busy.until()
    assert.deepInclude(refused, { type: "error", status: 503, stream_id: "late" })
    shared().provider.release()
    const [, last] = await busy.until(2)
    assert.strictEqual(last?.type, "response.completed")
    assert.strictEqual(await busy.closed(), 1001)
    assert.strictEqual(await exit, 0)
  })

  it("gets an error for an answer that exceeds the grace period, is closed with 1001, and the request is logged", async () => {
    const ingress = await startProcess(shared(), "ingress", { environment: { GRACE_MS: "100" } })
    const busy = await beginAnswer(ingress)
    const exit = ingress.terminate()
    const [last] = await busy.until()
    assert.strictEqual(last?.type, "response.failed")
    assert.strictEqual(await busy.closed(), 1001)
    assert.strictEqual(await exit, 0)
    assert.match(ingress.log, /"message":"request".*"operation":"responses".*"error":"Unavailable"/)
  })
})
