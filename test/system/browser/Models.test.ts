/** Models and their targets in a browser. */
import { assert, it } from "@effect/vitest"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { detours } from "../../fixture/client/Detours.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("the page of models in a browser", () => {
  const gateway = sharedGateway(detours)
  const site = sharedConsole(gateway)

  it("shows whose requests a target's 429 delays, for how long, and what the provider said", async () => {
    const { errors, goTo, page } = site()
    const headers = { "x-ratelimit-remaining-requests": "12", "x-ratelimit-remaining-tokens": "30000" }
    gateway().provider.behaveOnce({ kind: "status", status: 429, retryAfterMs: 3_600_000, headers })
    const answer = await gateway().request(chat("patient-chat"))
    assert.strictEqual(answer.status, 429)
    await goTo("/models", "Models & Providers")
    const model = page.getByRole("table", { name: "Models" }).getByRole("row").filter({ hasText: "patient-chat" })
    const text = await model.getByText("no calls for").innerText()
    assert.match(
      text,
      /^key_\w+: no calls for 3,[56]\d\d s after a 429 \(12 requests left, 30,000 tokens left\), at 1 worker$/
    )
    assert.deepStrictEqual(errors, [])
  })
})
