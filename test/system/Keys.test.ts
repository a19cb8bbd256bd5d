/** The administrator's commands for keys, as a running ingress sees what they do. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf } from "../fixture/ChatClient.ts"
import { eventually } from "../fixture/Eventually.ts"
import { Gateway } from "../fixture/Gateway.ts"

describe("keys", { timeout: 90_000 }, () => {
  it.live("work as soon as they are made, are refused within a second of being revoked, and are told once only", () =>
    Gateway.run({}, async (gateway) => {
      const use = (key: string): Promise<Outcome> =>
        outcomeOf(gateway.request(chat("free-chat"), {
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }
        }))
      const created = await gateway.admin("keys", "create", "--name", "short-lived")
      const [secret] = /sk-gw-[0-9A-Za-z]{32}/.exec(created) ?? assert.fail(created)
      const [id] = /key_[0-9A-Za-z]{12}/.exec(created) ?? assert.fail(created)
      // the command has just ended: the change needs milliseconds to be seen
      await eventually(() => use(secret), ({ kind }) => kind === "whole", 1_000)

      const listed = await gateway.admin("keys", "list")
      assert.match(listed, new RegExp(`^${id}.*short-lived$`, "m"))

      const revoked = gateway.admin("keys", "revoke", id)
      let refusedAt = Infinity
      const watching = eventually(() => use(secret), ({ kind }) => kind === "refused", 20_000).then((outcome) => {
        refusedAt = performance.now()
        return outcome
      })
      const printed = await revoked
      const revokedAt = performance.now()
      assert.deepInclude(await watching, { status: 401, code: "invalid_api_key" })
      console.log(`refused ${(refusedAt - revokedAt).toFixed(0)} ms after the command to revoke had ended`)
      assert.isBelow(refusedAt - revokedAt, 1_000)
      assert.strictEqual((await use(gateway.key)).kind, "whole")

      const listedAfter = await gateway.admin("keys", "list")
      assert.notInclude(listedAfter, id)
      for (const text of [listed, listedAfter, printed, gateway.log, gateway.nats.log]) {
        assert.notInclude(text, secret)
        assert.notInclude(text, gateway.key)
        assert.notInclude(text, "provider-secret")
      }
      const calls = gateway.provider.requests.map(({ body, headers }) => JSON.stringify(headers) + body.toString())
      assert.isTrue(calls.every((call) => !call.includes(secret) && !call.includes(gateway.key)))
    }))
})
