/** API keys in a browser: changes take effect for the gateway's clients. */
import { assert, it } from "@effect/vitest"
import OpenAI from "openai"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("API keys in a browser", () => {
  const gateway = sharedGateway()
  const site = sharedConsole(gateway)

  it("creates a key that the official client can use, and revokes it", async () => {
    const { createKey, page, shoot } = site()
    const secret = await createKey("browser test")
    await shoot("new-key")
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret, maxRetries: 0 })
    const tried = () =>
      openai.chat.completions.create({ model: "local-chat", messages: [{ role: "user", content: "Hello" }] }).then(
        () => undefined,
        (error: unknown) => error
      )
    const ask = async () => {
      const error = await tried()
      return error === undefined ? 200 : error instanceof OpenAI.APIError ? error.status : error
    }
    await eventually(ask, (status) => status === 200)

    await page.getByRole("dialog").getByRole("button", { name: "Done" }).click()
    assert.notInclude(await page.content(), secret)
    const row = page.getByRole("row").filter({ hasText: "browser test" })
    await row.getByText("Active").waitFor()

    await row.getByRole("button", { name: "Actions for browser test" }).click()
    await page.getByRole("menuitem", { name: "Disable" }).click()
    await row.getByText("Disabled").waitFor()
    await eventually(ask, (status) => status === 403)
    await row.getByRole("button", { name: "Actions for browser test" }).click()
    await page.getByRole("menuitem", { name: "Enable" }).click()
    await row.getByText("Active").waitFor()
    await eventually(ask, (status) => status === 200)

    await row.getByRole("button", { name: "Actions for browser test" }).click()
    await page.getByRole("menuitem", { name: "Edit limits" }).click()
    await page.getByRole("dialog").getByLabel("Requests per minute").fill("3")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await row.getByText("3 req/min").waitFor()
    const refusal = await eventually(tried, (error) => error !== undefined)
    if (!(refusal instanceof OpenAI.RateLimitError)) assert.fail(`not refused by its limit: ${refusal}`)
    assert.strictEqual(refusal.code, "rate_limit_exceeded")
    assert.strictEqual(refusal.headers.get("x-ratelimit-limit-requests"), "3")
    assert.strictEqual(refusal.headers.get("x-ratelimit-remaining-requests"), "0")
    // the window, and the rounding of the ledger's moments
    const retryAfter = Number(refusal.headers.get("retry-after"))
    assert.isTrue(retryAfter >= 1 && retryAfter <= 65, `${retryAfter}`)

    await row.getByRole("button", { name: "Actions for browser test" }).click()
    await page.getByRole("menuitem", { name: "Revoke" }).click()
    const confirmation = page.getByRole("dialog", { name: "Revoke this key?" })
    await confirmation.getByRole("button", { name: "Revoke key" }).click()
    await row.waitFor({ state: "detached" })
    await eventually(ask, (status) => status === 401)

    await page.getByRole("tab", { name: "Audit log" }).click()
    const log = page.getByRole("list", { name: "Key changes" }).getByRole("listitem").filter({
      hasText: "browser test"
    })
    await log.first().getByText("Revoked").waitFor()
    assert.deepStrictEqual(
      (await log.allInnerTexts()).map((text) => text.split("\n")[0]?.toLowerCase()),
      ["revoked", "edited", "enabled", "disabled", "created"]
    )
    assert.include(await log.first().innerText(), "by Ada")
  })

  it("changes only the edited fields, not those that others changed meanwhile or that it cannot show", async () => {
    const { goTo, page, port } = site()
    const other = await ConsoleClient.signedIn(port, "Grace")
    const made = await other.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", {
      name: "edited by two",
      expiresAt: "2099-01-31T12:34:56Z",
      monthlyBudgetUsd: 0.005,
      requestsPerMinute: 10
    })
    await goTo("/keys", "API Keys")
    const row = page.getByRole("row").filter({ hasText: "edited by two" })
    const open = async () => {
      await row.getByRole("button", { name: "Actions for edited by two" }).click()
      await page.getByRole("menuitem", { name: "Edit limits" }).click()
    }
    await open()
    // it leaked, and is disabled while the form is open
    await other.send("PATCH", `/api/keys/${made.body.key.id}`, { disabled: true, requestsPerMinute: 1 })
    await page.getByRole("dialog").getByLabel("Tokens per minute").fill("9000")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await row.getByText("9K tok/min").waitFor()
    const { body } = await other.send<ReadonlyArray<object>>("GET", "/api/keys")
    assert.deepInclude(body.find((key) => "name" in key && key.name === "edited by two"), {
      disabled: true,
      expiresAt: "2099-01-31T12:34:56.000Z",
      monthlyBudgetUsd: 0.005,
      requestsPerMinute: 1,
      tokensPerMinute: 9_000
    })
    await open()
    await page.getByRole("dialog").getByLabel("Requests per minute").fill("")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await row.getByText("1 req/min").waitFor({ state: "detached" })
  })

  it("works by keyboard alone: a dialog takes the focus, keeps it and returns it", async () => {
    const { goTo, page } = site()
    await goTo("/keys", "API Keys")
    const create = page.getByRole("button", { name: "Create key" }).first()
    await create.focus()
    await page.keyboard.press("Enter")
    const dialog = page.getByRole("dialog")
    await dialog.waitFor()
    await page.waitForFunction(() => document.activeElement instanceof HTMLInputElement)
    for (let step = 0; step < 12; step++) {
      await page.keyboard.press("Tab")
      assert.isTrue(await dialog.evaluate((element) => element.contains(document.activeElement)))
    }
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
    await page.waitForFunction(() => document.activeElement?.textContent?.includes("Create key") === true)
  })

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
