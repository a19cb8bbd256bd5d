/** A pool of the catalogue that was not provisioned, in a cluster where ingress may not create it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

it.live("does not keep ingress from serving the models of other pools", () =>
  Effect.scoped(Effect.gen(function*() {
    const nats = yield* Effect.acquireRelease(
      Effect.promise(() => SecureNats.start()),
      (nats) => Effect.promise(() => nats.remove())
    )
    yield* Effect.promise(() => nats.provision())
    const options = {
      environmentOf: (service: string) => nats.environmentOf(service as NatsService),
      models: "  slow-chat: { workload: chat, pool: slow, targets: [{ provider: free }] }"
    }
    yield* Gateway.runHereOn(nats.server, options, async (gateway) => {
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
      // it still looks for the pool
      assert.include(gateway.ingress.log, "waiting for JetStream")
    })
  })))
