/** Teams in a browser: their limits take effect for the gateway's clients, and their defaults for new keys. */
import { assert, it } from "@effect/vitest"
import type { Locator } from "playwright-core"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"

describeInBrowser("teams in a browser", () => {
  const gateway = sharedGateway()
  const site = sharedConsole(gateway)

  it("creates teams with a shared limit, and a key in one of them that the limit applies to", async () => {
    const { choose, createKey, goTo, page } = site()
    const createTeam = async (name: string, fill: (dialog: Locator) => Promise<void>) => {
      await page.getByRole("button", { name: "Create team" }).first().click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Name").fill(name)
      await fill(dialog)
      await dialog.getByRole("button", { name: "Create team" }).click()
      await page.getByRole("row").filter({ hasText: name }).waitFor()
    }
    await goTo("/teams", "Teams")
    await page.getByRole("heading", { name: "No teams yet" }).waitFor()
    await createTeam("Example Ltd", (dialog) => dialog.getByLabel("Requests per minute").fill("1"))
    await createTeam("search", (dialog) => choose(dialog, "Part of", "Example Ltd"))
    const rows = await page.getByRole("table", { name: "Teams" }).getByRole("row").allInnerTexts()
    assert.include(rows[1], "Example Ltd")
    assert.include(rows[1], "1 req/min")
    assert.include(rows[2], "search")

    const secret = await createKey("of a team", (dialog) => choose(dialog, "Team", "search"))
    const ask = async () => {
      const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" }
      const response = await fetch(`${gateway().url}/v1/chat/completions`, {
        method: "POST",
        headers,
        body: JSON.stringify(chat("local-chat"))
      })
      return { status: response.status, text: await response.text() }
    }
    await eventually(ask, ({ status }) => status === 200)
    const refused = await ask()
    assert.strictEqual(refused.status, 429)
    assert.include(refused.text, "The team 'Example Ltd' has reached its limit of 1 requests per minute")

    await goTo("/teams", "Teams")
    await page.getByRole("button", { name: "Actions for search" }).click()
    await page.getByRole("menuitem", { name: "Delete" }).click()
    await page.getByRole("dialog").getByRole("button", { name: "Delete team" }).click()
    await page.getByText("The team has 1 keys and 0 teams").waitFor()
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click()
    await page.getByRole("button", { name: "Actions for Example Ltd" }).click()
    await page.getByRole("menuitem", { name: "Edit" }).click()
    await page.getByRole("dialog").getByLabel("Requests per minute").fill("1000")
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
    await page.getByRole("row").filter({ hasText: "1K req/min" }).waitFor()
    await eventually(async () => (await ask()).status, (status) => status === 200)
  })

  it("sets the webhook of a team, and its defaults for new keys", async () => {
    const { choose, goTo, page } = site()
    await goTo("/teams", "Teams")
    const open = async (action: string) => {
      await page.getByRole("button", { name: "Actions for search" }).click()
      await page.getByRole("menuitem", { name: action }).click()
      return page.getByRole("dialog")
    }
    const webhook = await open("Webhook")
    await webhook.getByLabel("URL").fill("https://hooks.example/budgets")
    await webhook.getByRole("button", { name: "Save" }).click()
    const secret = await webhook.getByTestId("secret").innerText()
    assert.match(secret, /^whsec_/)
    await webhook.getByText("No events in the last two days.").waitFor()
    await webhook.getByRole("button", { name: "New secret" }).click()
    await webhook.getByText("The previous secret also signs events until").waitFor()
    await webhook.getByTestId("secret").filter({ hasNotText: secret }).waitFor()
    await webhook.getByRole("button", { name: "Remove" }).click()
    await webhook.getByRole("button", { name: "Remove" }).waitFor({ state: "detached" })
    await webhook.getByTestId("secret").waitFor({ state: "detached" })
    await page.keyboard.press("Escape")
    await webhook.waitFor({ state: "detached" })

    const team = await open("Edit")
    await team.getByRole("button", { name: "Defaults for new keys" }).click()
    await team.getByLabel("Weight").fill("7")
    await team.getByText("Batch", { exact: true }).click()
    await team.getByRole("button", { name: "Save" }).click()
    await team.waitFor({ state: "detached" })
    const reopened = await open("Edit")
    await reopened.getByRole("button", { name: "Defaults for new keys" }).click()
    assert.strictEqual(await reopened.getByLabel("Weight").inputValue(), "7")
    await page.keyboard.press("Escape")

    await goTo("/keys", "API Keys")
    await page.getByRole("button", { name: "Create key" }).first().click()
    const key = page.getByRole("dialog")
    await choose(key, "Team", "search")
    await key.getByRole("button", { name: "Limits and models" }).click()
    assert.strictEqual(await key.getByLabel("Weight").inputValue(), "7")
    assert.isTrue(await key.getByRole("radio", { name: "Batch" }).isChecked())
    await key.getByRole("button", { name: "Cancel" }).click()
  })

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
