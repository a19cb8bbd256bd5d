/** Sign-in to the console with OpenID Connect, in a real browser, at a certified provider. */
import { assert, beforeAll, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { eventually } from "../../fixture/general/Eventually.ts"
import { describeInBrowser, pageErrors, sharedBrowser } from "../../fixture/browser/Browser.ts"
import { violationsOf } from "../../fixture/browser/ConsolePage.ts"
import { testAdminToken } from "../../fixture/gateway/Gateway.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { type OpenIdServer, sharedOpenIdServer } from "../../fixture/openid/OpenIdServer.ts"

const accounts = {
  ada: { preferred_username: "ada", groups: ["operators"] },
  alan: { preferred_username: "alan", groups: ["security"] },
  mel: { preferred_username: "mel", groups: ["research"] },
  mallory: { preferred_username: "mallory", groups: ["everybody"] }
}

describeInBrowser("sign-in in a browser", () => {
  const gateway = sharedGateway({ workers: 0 })
  const openProvider = sharedOpenIdServer()
  const open = sharedBrowser()
  let server: OpenIdServer
  let url = ""

  beforeAll(async () => {
    url = `http://127.0.0.1:${await freePort()}`
    server = await openProvider({ accounts, consoleUrl: url })
    await gateway().startConsole({
      ...server.environment,
      CONSOLE_OIDC_NAME: "Example ID",
      CONSOLE_OIDC_ROLES: "{ operators: admin, security: auditor, research: { member: Research } }"
    })
  })

  const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name }).waitFor()

  /** Signs in at the provider's page. */
  const signIn = async (login: string, path = "/") => {
    const page = await (await open()).newPage()
    const heard = pageErrors(page)
    await page.goto(`${url}${path}`)
    await heading(page, "Sign in to the console")
    await page.getByRole("link", { name: "Sign in with Example ID" }).click()
    await page.locator("[name=login]").fill(login)
    await page.locator("[name=password]").fill("any")
    await page.locator("button[type=submit]").click()
    return { page, heard }
  }

  it("returns to the page that the person wanted, and signs out at the provider, too", async () => {
    const { heard, page } = await signIn("ada", "/usage")
    await heading(page, "Usage")
    await page.getByText("ada", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Sign out" }).click()
    await page.waitForURL(`${server.issuer}/session/end*`)
    await page.locator("button[value=yes]").click()
    await heading(page, "Sign in to the console")
    assert.strictEqual(new URL(page.url()).origin, url)
    await page.getByRole("link", { name: "Sign in with Example ID" }).click()
    // the provider asks for the password again
    await page.locator("[name=password]").waitFor()
    assert.deepStrictEqual(heard.filter((error) => !error.includes(server.issuer)), [])
  })

  it("hides from auditors what they may not change", async () => {
    const { page } = await signIn("alan")
    await heading(page, "API Keys")
    await page.getByText("auditor", { exact: true }).waitFor()
    await page.getByRole("table", { name: "API keys" }).waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Create key" }).count(), 0)
    assert.strictEqual(await page.getByRole("button", { name: /^Actions for/ }).count(), 0)
  })

  it("lets a member create keys for the team that an administrator has created", async () => {
    const { page: administrators } = await signIn("ada", "/teams")
    await heading(administrators, "Teams")
    await administrators.getByRole("button", { name: "Create team" }).first().click()
    const team = administrators.getByRole("dialog", { name: "Create a team" })
    await team.getByLabel("Name").fill("Research")
    await team.getByRole("button", { name: "Create team" }).click()
    await administrators.getByRole("table", { name: "Teams" }).getByText("Research").waitFor()

    const { heard, page } = await signIn("mel", "/keys")
    await heading(page, "API Keys")
    await page.getByText("member", { exact: true }).waitFor()
    await page.getByRole("button", { name: "Create key" }).first().click()
    const key = page.getByRole("dialog", { name: "Create an API key" })
    await key.getByLabel("Name").fill("notebooks")
    await key.getByRole("combobox", { name: "Team" }).click()
    await page.getByRole("option", { name: "Research" }).click()
    await key.getByRole("button", { name: "Create key" }).click()
    const secret = await page.getByTestId("secret").innerText()
    await page.getByRole("button", { name: "Done" }).click()
    await page.getByRole("table", { name: "API keys" }).getByText("notebooks").waitFor()
    await eventually(
      () => fetch(`${gateway().url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } }),
      ({ status }) => status === 200
    )
    await page.getByRole("tab", { name: "Audit log" }).click()
    await page.getByRole("list", { name: "Key changes" }).getByText("notebooks").waitFor()
    await page.getByRole("link", { name: "Tasks" }).click()
    await page.getByRole("heading", { name: "No tasks" }).waitFor()
    await page.getByRole("link", { name: "Teams" }).click()
    await page.getByRole("table", { name: "Teams" }).getByText("Research").waitFor()
    assert.strictEqual(await page.getByRole("button", { name: "Create team" }).count(), 0)
    assert.deepStrictEqual(heard, [])
  })

  it("explains why somebody without a role is refused", async () => {
    const { page } = await signIn("mallory")
    await page.getByRole("alert").getByText("none of your groups has a role here").waitFor()
    assert.deepStrictEqual(await violationsOf(page), [])
  })

  it("shows the form for the admin token on demand", async () => {
    const page = await (await open()).newPage()
    await page.goto(url)
    await page.getByRole("button", { name: "Use the admin token" }).click()
    await page.getByLabel("Admin token").fill(testAdminToken)
    await page.getByRole("button", { name: "Sign in" }).click()
    await heading(page, "API Keys")
    await page.getByText("admin (admin token)").waitFor()
  })
})
