/** The administrator's commands for keys, and their effect on a running ingress. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

describe("keys", () => {
  it.live("work once created, are rejected soon after revocation, and are shown only once", () =>
    Gateway.runHere({}, async (gateway) => {
      const use = (key: string): Promise<Outcome> =>
        outcomeOf(gateway.request(chat("free-chat"), {
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }
        }))
      const created = await gateway.admin("keys", "create", "--name", "short-lived")
      const [secret] = /sk-gw-[0-9A-Za-z]{32}/.exec(created) ?? assert.fail(created)
      const [id] = /key_[0-9A-Za-z]{12}/.exec(created) ?? assert.fail(created)
      await eventually(() => use(secret), ({ kind }) => kind === "whole")

      const listed = await gateway.admin("keys", "list")
      assert.match(listed, new RegExp(`^${id}  active  .*short-lived$`, "m"))
      assert.match(
        await gateway.admin("keys", "create", "--name", "late", "--expires", "2020-01-01"),
        /^key_\w+  expired  /m
      )

      const printed = await gateway.admin("keys", "revoke", id)
      const refused = await eventually(() => use(secret), ({ kind }) => kind === "refused")
      assert.deepInclude(refused, { status: 401, code: "invalid_api_key" })
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

  it.live("pass on what they stored to their replacements, until it is erased", () =>
    Gateway.runHere({}, async (gateway) => {
      const create = async (...words: ReadonlyArray<string>) => {
        const created = await gateway.admin("keys", ...words)
        const [secret] = /sk-gw-[0-9A-Za-z]{32}/.exec(created) ?? assert.fail(created)
        const [id] = /key_[0-9A-Za-z]{12}/.exec(created) ?? assert.fail(created)
        return { secret, id }
      }
      const compact = (key: string, body: object) =>
        fetch(`${gateway.url}/v1/responses/compact`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "local-chat", ...body })
        })
      const first = await create("create", "--name", "first")
      const input = [{ role: "user", content: "The lighthouse was built in 1871." }]
      const sealed = async () => {
        const answer = await eventually(() => compact(first.secret, { input }), ({ status }) => status === 200)
        return await answer.json() as { readonly id: string; readonly output: ReadonlyArray<object> }
      }
      const { id, output } = await sealed()
      const second = await create("replace", first.id)
      assert.include(await gateway.admin("keys", "list"), `${second.id}  owner ${first.id}`)
      const read = (key: string) =>
        Promise.all([{ input: output }, { previous_response_id: id }].map(
          (body) => compact(key, body).then(({ status }) => status)
        ))
      await eventually(() => read(second.secret), (both) => both.every((status) => status === 200))
      assert.deepStrictEqual(await read(gateway.key), [400, 404])

      await gateway.admin("keys", "erase", first.id)
      await eventually(() => read(second.secret), ([one, other]) => one === 400 && other === 404)
      await eventually(() => read(first.secret), ([one, other]) => one === 400 && other === 404)
      const { output: fresh } = await sealed()
      assert.strictEqual((await compact(second.secret, { input: fresh })).status, 200)
      const failed = await gateway.admin("keys", "erase", "key_unknown").catch(String)
      assert.include(failed, "Nothing is stored for key_unknown")
    }))

  it.live("are edited, disabled and enabled while in use, and a mistake is named", () =>
    Gateway.runHere({}, async (gateway) => {
      const created = await gateway.admin("keys", "create", "--name", "edited", "--requests-per-minute", "600")
      const [secret] = /sk-gw-[0-9A-Za-z]{32}/.exec(created) ?? assert.fail(created)
      const [id = ""] = /key_[0-9A-Za-z]{12}/.exec(created) ?? assert.fail(created)
      assert.match(created, /600 requests\/min {2}standard x1 {2}edited/)
      const use = (): Promise<Outcome> =>
        outcomeOf(gateway.request(chat("free-chat"), {
          headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }
        }))
      await eventually(use, ({ kind }) => kind === "whole")

      const edited = await gateway.admin(
        ...["keys", "edit", id, "--tokens-per-minute", "9000", "--concurrent", "4", "--models", "free-chat, local-*"],
        ...["--class", "interactive", "--weight", "3", "--budget", "12.5", "--requests-per-minute", "none"],
        ...["--expires", "2099-01-31"]
      )
      assert.include(edited, "expires 2099-01-31T00:00:00.000Z  9000 tokens/min  4 at once  12.5 USD/month")
      assert.include(edited, "models free-chat,local-*  interactive x3  edited")
      assert.include(await gateway.admin("keys", "list"), edited.trim())

      await gateway.admin("keys", "disable", id)
      const refused = await eventually(use, ({ kind }) => kind === "refused")
      assert.deepInclude(refused, { status: 403, code: "disabled_api_key" })
      await gateway.admin("keys", "enable", id)
      await eventually(use, ({ kind }) => kind === "whole")

      const mistakes: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp]> = [
        [["--name", ""], /--name: must be a string of 1 to 200 characters/],
        [["--weight", "0"], /--weight: must be a whole number from 1 to 100/],
        [["--class", "urgent"], /--class: must be "interactive", "standard" or "batch"/],
        [["--budget", "much"], /--budget: must be a number greater than 0, or none/],
        [["--team", "team_4fJ2kQz8sT1a"], /--team: no team has the id team_4fJ2kQz8sT1a/],
        [["--models", "a*b"], /--models: must be a model's name/],
        [[], /No changes given/]
      ]
      for (const [flags, expected] of mistakes) {
        const failure = await gateway.admin("keys", "edit", id, ...flags).then(() => "accepted", String)
        assert.match(failure, expected)
      }
    }))
})
