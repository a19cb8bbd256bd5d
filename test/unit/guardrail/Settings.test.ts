/** The settings of guardrails: how a model's replace the common ones, and which are rejected. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import * as Models from "../../../shared/catalogue/Models.ts"

const textOf = (guardrail: string, model = "workload: chat") => `
${guardrail === "" ? "" : `guardrail: ${guardrail}`}
providers:
  local: { protocol: local }
models:
  ours: { ${model}, targets: [{ provider: local }] }
`
const guardrailOf = (...text: Parameters<typeof textOf>) =>
  Effect.map(Catalogue.parse("gateway.yaml", textOf(...text)), ({ guardrails }) => guardrails?.get("ours"))
const mistakeIn = (...text: Parameters<typeof textOf>) =>
  Effect.map(Effect.flip(Catalogue.parse("gateway.yaml", textOf(...text))), ({ message }) => message)

const url = "http://guard.test/check"

describe("a guardrail in the catalogue", () => {
  it.effect("has defaults, which a model replaces one by one", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* guardrailOf(`{ url: "${url}" }`), {
        url,
        checks: ["request", "answer"],
        onUnreachable: "closed",
        timeoutMs: 2_000,
        concurrency: 64,
        headers: {},
        window: { characters: 1_000, overlap: 200 }
      })
      const own = "workload: chat, guardrail: { checks: [answer], window: { overlap: 5 } }"
      assert.deepInclude(yield* guardrailOf(`{ url: "${url}", timeoutMs: 7, window: { characters: 50 } }`, own), {
        checks: ["answer"],
        timeoutMs: 7,
        window: { characters: 50, overlap: 5 }
      })
      assert.isUndefined(yield* guardrailOf(`{ url: "${url}" }`, "workload: chat, guardrail: { checks: [] }"))
      assert.deepInclude(yield* guardrailOf("", `workload: chat, guardrail: { url: "${url}" }`), { url })
      assert.isUndefined(yield* guardrailOf(""))
    }))

  it.effect("is rejected if it can never be asked, or would refuse everything", () =>
    Effect.gen(function*() {
      assert.include(yield* mistakeIn("{ checks: [answer] }"), "guardrail.url: is required")
      assert.include(
        yield* mistakeIn("", "workload: chat, guardrail: { checks: [answer] }"),
        "models.ours.guardrail.url: is required"
      )
      assert.include(yield* mistakeIn("{ url: guard }"), "an http(s) URL")
      assert.include(yield* mistakeIn(`{ url: "${url}", headers: { Host: a } }`), "guardrail.headers.Host")
      for (const workload of ["images", "video"]) {
        assert.include(yield* mistakeIn(`{ url: "${url}" }`, `workload: ${workload}`), "must have `checks: [request]`")
        yield* guardrailOf(`{ url: "${url}", checks: [request] }`, `workload: ${workload}`)
        yield* guardrailOf(`{ url: "${url}", onUnreachable: open }`, `workload: ${workload}`)
      }
    }))

  it.effect("has no literal secret, in any process", () =>
    Effect.gen(function*() {
      const secret = "Bearer s3cr3t-0123456789"
      for (const at of ["secret: ", "headers: { x-api-key: "]) {
        const settings = `{ url: "${url}", ${at}"${secret}"${at.includes("{") ? " }" : ""} }`
        for (const text of [textOf(settings), textOf("", `workload: chat, guardrail: ${settings}`)]) {
          const { message } = yield* Effect.flip(Catalogue.parse("gateway.yaml", text))
          const ingress = yield* Effect.flip(Models.parse("gateway.yaml", text))
          assert.include(message, "must be a reference")
          assert.include(ingress.message, "must be a reference")
          assert.notInclude(message + ingress.message, secret)
        }
      }
    }))

  it.effect("is nothing that ingress keeps", () =>
    Effect.gen(function*() {
      const snapshot = yield* Models.parse("gateway.yaml", textOf(`{ url: "${url}" }`))
      assert.notInclude(JSON.stringify([...snapshot.models], null, 1), "guard.test")
    }))
})
