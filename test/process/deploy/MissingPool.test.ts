/** A pool of the catalogue that was not provisioned, in a cluster where ingress may not create it. */
import { assert, it } from "@effect/vitest"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { FakeProvider } from "../../fixture/provider/FakeProvider.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

it("does not keep ingress from serving the models of other pools", { timeout: 90_000 }, async () => {
  const nats = await SecureNats.start()
  const provider = await FakeProvider.start()
  try {
    await nats.provision()
    const gateway = await Gateway.start(nats.server, provider, {
      environmentOf: (service) => nats.environmentOf(service as NatsService),
      models: "  slow-chat: { workload: chat, pool: slow, targets: [{ provider: free }] }"
    })
    try {
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
      // it still looks for the pool
      assert.include(gateway.ingress.log, "waiting for JetStream")
    } finally {
      await gateway.stop()
    }
  } finally {
    await provider.stop()
    await nats.remove()
  }
})
