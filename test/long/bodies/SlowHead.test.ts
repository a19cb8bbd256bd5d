/** A client that never completes a request's head: ingress waits for ten seconds. */
import { assert, it } from "@effect/vitest"
import { sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({ workers: 0 })

it("a request whose head is too slow gets an error", async () => {
  const [answer] = await sendRaw(shared().ingress.port, ["POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n"])
  assert.strictEqual(answer?.status, 408)
})
