/** What clients are told while NATS can store no limits, such as on a full disk. */
import { assert, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

it("units that are leased serve; then 503 with a time to retry, no 429; a key without limits is served", async () => {
  const gateway = shared()
  const ask = (key: string) =>
    gateway.request(chat("free-chat"), {
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }
    })
  const leased = await gateway.createKeyWith({ requestsPerMinute: 1_000 })
  const others = await Promise.all([
    gateway.createKeyWith({ requestsPerMinute: 1_000 }),
    gateway.createKeyWith({ tokensPerMinute: 100_000 }),
    gateway.createKeyWith({ concurrentRequests: 10 })
  ])
  // makes the bucket, and leases a twentieth of the limit
  assert.strictEqual((await outcomeOf(ask(leased.key))).kind, "whole")

  const connection = await connect({ servers: gateway.nats.url })
  const { streams } = await jetstreamManager(connection)
  const { config } = await streams.info("KV_KEY_LIMITS")
  await streams.update("KV_KEY_LIMITS", { ...config, max_bytes: 1 })

  const outcomes = await Promise.all(others.map(({ key }) => outcomeOf(ask(key))))
  for (const outcome of outcomes) {
    assert.deepStrictEqual(outcome, { kind: "refused", status: 503, code: "limits_unavailable", retryAfter: "2" })
  }
  assert.strictEqual((await outcomeOf(ask(leased.key))).kind, "whole")
  assert.strictEqual((await outcomeOf(ask(gateway.key))).kind, "whole")
  assert.include(gateway.log, "a limit's ledger cannot be read or written")

  await streams.update("KV_KEY_LIMITS", { ...config, max_bytes: -1 })
  for (const { key } of others) await eventually(() => outcomeOf(ask(key)), ({ kind }) => kind === "whole")
  await connection.close()
})
