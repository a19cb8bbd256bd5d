/**
 * Edits of the catalogue while the gateway runs: streams continue, a valid edit applies, an invalid one is reported and
 * ignored.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFile, rename, writeFile } from "node:fs/promises"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"

/** Replaces the catalogue file atomically. */
const edit = async ({ catalogueFile }: AnyGateway, change: (text: string) => string) => {
  await writeFile(`${catalogueFile}.new`, change(await readFile(catalogueFile, "utf8")))
  await rename(`${catalogueFile}.new`, catalogueFile)
}

/** Waits until ingress and worker have each logged these words this many times. */
const untilLogged = (gateway: AnyGateway, words: string, times: number) =>
  eventually(
    () => [gateway.ingress, ...gateway.workers].map(({ log }) => log.split(words).length - 1),
    (counts) => counts.every((count) => count >= times)
  )

const models = async (gateway: AnyGateway): Promise<ReadonlyArray<string>> => {
  const answer = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } })
  const { data } = await answer.json() as { readonly data: ReadonlyArray<{ readonly id: string }> }
  return data.map(({ id }) => id)
}

describe("an edit of the catalogue", () => {
  it.live("interrupts none of fifty streams, whether it is valid or not", () =>
    Gateway.runHere({}, async (gateway) => {
      gateway.provider.behave({ kind: "hold", after: 2 })
      const streams = await Promise.all(
        Array.from({ length: 50 }, () => startStream(gateway.request(chat("free-chat", { stream: true }))))
      )

      // removes the streams' provider and model
      await edit(gateway, (text) =>
        text
          .replace(/^ {2}free: .*\n/m, "")
          .replace(/^ {2}free-chat: .*\n/m, "  new-chat: { workload: chat, targets: [{ provider: paid }] }\n")
          .replace("provider: free, model: upstream-chat", "provider: paid, model: another-chat")
          .replaceAll("provider: free", "provider: paid"))
      await untilLogged(gateway, "catalogue reloaded", 1)
      assert.include(await models(gateway), "new-chat")
      assert.notInclude(await models(gateway), "free-chat")
      gateway.provider.behave({ kind: "answer" })
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("new-chat"))), { kind: "whole" })
      assert.deepInclude(await outcomeOf(gateway.request(chat("free-chat"))), { code: "model_not_found" })
      await outcomeOf(gateway.request(chat("alias-chat")))
      assert.deepInclude(gateway.provider.requests.at(-1)?.json, { model: "another-chat" })

      const before = await models(gateway)
      await edit(gateway, (text) => text.replace("new-chat: { workload: chat", "newer-chat: { workload: chess"))
      await untilLogged(gateway, "catalogue not reloaded, keeping the old one", 1)
      for (const { log } of [gateway.ingress, ...gateway.workers]) {
        assert.match(log, /gateway\.yaml:\d+ models\.newer-chat\.workload: must be/)
      }
      assert.deepStrictEqual(await models(gateway), before)
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("new-chat"))), { kind: "whole" })

      gateway.provider.release()
      const outcomes = await Promise.all(streams.map((stream) => stream.outcome()))
      assert.deepStrictEqual(tally(outcomes), { whole: 50 })

      await edit(gateway, (text) => text.replace("workload: chess", "workload: chat"))
      await untilLogged(gateway, "catalogue reloaded", 2)
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("newer-chat"))), { kind: "whole" })
    }))
})
