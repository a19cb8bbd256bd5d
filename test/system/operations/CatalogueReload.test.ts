/**
 * Edits of the catalogue while the gateway runs: streams continue, a valid edit applies, one that a process cannot use is reported and
 * ignored by all.
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

  // each takes a working provider's key away; by the names of the environment in test/fixture/gateway/Gateway.ts
  const provider = (apiKey: string, more = "") => (text: string) =>
    text
      .replace(/^ {2}free: .*$/m, (line) => line.replace("${PROVIDER_SECRET}", apiKey).replace("free:", `free${more}:`))
      .replaceAll("provider: free", `provider: free${more}`)
  const missing: ReadonlyArray<readonly [name: string, change: (text: string) => string, reason: RegExp]> = [
    [
      "that misspells its variable",
      provider("${PROVIDER_SECERT}"),
      /providers\.free\.apiKey: PROVIDER_SECERT is not set/
    ],
    ["that names an empty variable", provider("${EMPTY_SECRET}"), /providers\.free\.apiKey: EMPTY_SECRET is not set/],
    [
      "that names a file which does not exist",
      provider("${file:/nowhere/key}"),
      /providers\.free\.apiKey: \/nowhere\/key cannot/
    ],
    [
      "that renames it and its variable",
      provider("${OTHER_SECRET}", "-too"),
      /providers\.free-too\.apiKey: OTHER_SECRET is not set/
    ],
    [
      "that adds a target without a key",
      (text) =>
        text
          .replace(
            /^ {2}local: .*$/m,
            "$&\n  more: { protocol: openai, baseUrl: \"http://more/v1\", apiKey: \"${MORE}\" }"
          )
          .replace("targets: [{ provider: free }]", "targets: [{ provider: more }, { provider: free }]"),
      /providers\.more\.apiKey: MORE is not set/
    ],
    [
      "that adds a guardrail without its secret",
      (text) =>
        text.replace("free-chat: {", "free-chat: { guardrail: { url: \"http://guard\", secret: \"${GUARD}\" },"),
      /models\.free-chat\.guardrail\.secret: GUARD is not set/
    ],
    [
      "that refers to a missing secret in a package's settings",
      (text) =>
        text
          .replace(
            /^ {2}local: .*$/m,
            "$&\n  sdk: { protocol: ai-sdk, options: { package: \"@ai-sdk/fal\", settings: { apiKey: \"${SDK_KEY}\" } } }"
          )
          .replace("targets: [{ provider: free }]", "targets: [{ provider: sdk }, { provider: free }]"),
      /providers\.sdk\.options\.settings\.apiKey: SDK_KEY is not set/
    ]
  ]

  it.live("is taken by no process if a worker would lack a key, and the reason is logged by all", () =>
    Gateway.runHere({ environmentOf: () => ({ EMPTY_SECRET: "" }) }, async (gateway) => {
      const original = await readFile(gateway.catalogueFile, "utf8")
      const processes = [gateway.ingress, ...gateway.workers]
      for (const [name, change, reason] of missing) {
        // a new model shows whether ingress has taken the edit
        const more = (text: string) =>
          text.replace("  free-chat:", "  new-chat: { workload: chat, targets: [{ provider: free }] }\n  free-chat:")
        await edit(gateway, () => change(more(original)))
        await eventually(
          () => processes.filter(({ log }) => reason.test(log)).length,
          (count) => count === processes.length
        )
        assert.notInclude(await models(gateway), "new-chat", name)
        assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" }, name)
      }
      await edit(gateway, (text) => `${original}\n# ${text.length}`.replace("  free-chat:", "  free-chat2:"))
      await untilLogged(gateway, "catalogue reloaded", 1)
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat2"))), { kind: "whole" })
    }))

  it.live("of providers that a worker rejects is not taken by ingress", () =>
    Gateway.runHere({ services: ["images"] }, async (gateway) => {
      await edit(gateway, (text) =>
        text
          .replace("  free-chat:", "  new-chat: { workload: chat, targets: [{ provider: free }] }\n  free-chat:")
          .replace(
            "local-image: { workload: images, targets: [{ provider: local }]",
            "local-image: { workload: images, targets: [{ provider: nowhere }]"
          ))
      await untilLogged(gateway, "there is no provider 'nowhere'", 1)
      assert.notInclude(await models(gateway), "new-chat")
    }))

  it.live("is taken by no worker if one of another workload lacks a key", () =>
    Gateway.runHere({ services: ["images"] }, async (gateway) => {
      await edit(gateway, (text) =>
        text
          .replace(
            /^ {2}local: .*$/m,
            "$&\n  art: { protocol: openai, baseUrl: \"http://art/v1\", apiKey: \"${ART_KEY}\" }"
          )
          .replace(
            "local-image: { workload: images, targets: [{ provider: local }]",
            "local-image: { workload: images, targets: [{ provider: art }]"
          )
          .replace("  free-chat:", "  new-chat: { workload: chat, targets: [{ provider: free }] }\n  free-chat:"))
      await untilLogged(gateway, "providers.art.apiKey: ART_KEY is not set", 1)
      assert.notInclude(await models(gateway), "new-chat")
      for (const { log } of gateway.workers) assert.match(log, /other processes object.*images/)
    }))
})
