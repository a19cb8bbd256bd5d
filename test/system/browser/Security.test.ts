/** Who and what the console keeps out, in a browser: people without the admin token, other sites, and scripts in its contents. */
import { assert, it } from "@effect/vitest"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { testAdminToken } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("the console's security in a browser", () => {
  const gateway = sharedGateway()
  const site = sharedConsole(gateway, { isSignedIn: false })

  it("requires the admin token before it shows anything", async () => {
    const { page, shoot, url, violations } = site()
    await page.goto(`${url}/usage`)
    await page.getByRole("heading", { name: "Sign in to the console" }).waitFor()
    assert.deepStrictEqual(await violations(), [])
    await shoot("sign-in")
    await page.getByLabel("Admin token").fill("not the admin token at all")
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("alert").getByText("Invalid admin token").waitFor()
    await page.getByLabel("Admin token").fill(testAdminToken)
    await page.getByLabel("Your name").fill("Ada")
    await page.getByRole("button", { name: "Sign in" }).click()
    await page.getByRole("heading", { level: 1, name: "Usage" }).waitFor()
    await page.getByText("Ada", { exact: true }).waitFor()
  })

  it("executes nothing from a key's name or a model's answer", async () => {
    const { choose, createKey, goTo, page } = site()
    const attacks = [
      `<img src=x onerror="document.title='owned'">`,
      `<script>document.title='owned'</script>`,
      `"><svg onload="document.title='owned'">`,
      `javascript:document.title='owned'`
    ]
    for (const name of attacks) {
      await page.evaluate(
        async (name) =>
          void await fetch("/api/keys", {
            method: "POST",
            headers: { "x-gateway-console": "1", "content-type": "application/json" },
            body: JSON.stringify({ name })
          }),
        name
      )
    }
    await goTo("/keys", "API Keys")
    for (const name of attacks) await page.getByRole("row").getByText(name, { exact: true }).waitFor()
    await page.getByRole("tab", { name: "Audit log" }).click()
    await page.getByRole("listitem").filter({ hasText: attacks[0] ?? "" }).first().waitFor()

    await createKey("for hostile answers")
    await page.getByRole("button", { name: "Try it in the playground" }).click()
    await choose(page, "Model", "free-chat")
    // the provider echoes the question
    await page.getByLabel("Message").fill(attacks.join("\n"))
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByText(/^Answered in/).waitFor()
    await page.getByTestId("text").getByText(attacks[0] ?? "").waitFor()
    assert.strictEqual(await page.title(), "Playground · Model Gateway")
    assert.strictEqual(await page.locator("img[src=x], svg[onload]").count(), 0)
  })

  it("keeps other sites out of a signed-in browser", async () => {
    const { context, page, url } = site()
    const keys = () =>
      page.evaluate(async () => [...(await (await fetch("/api/keys")).text()).matchAll(/key_\w+/g)].join())
    const keysBefore = await keys()
    // another port of the same host, which counts as the same site: the hardest case
    const elsewhere = await context.newPage()
    await elsewhere.goto(`${gateway().url}/openapi.json`)
    const outcomes = await elsewhere.evaluate(async (console) => {
      const outcomeOf = (request: Promise<Response>) => request.then(({ type }) => type, () => "blocked")
      const body = JSON.stringify({ name: "made by another site" })
      return Promise.all([
        outcomeOf(fetch(`${console}/api/keys`, { credentials: "include" })),
        outcomeOf(fetch(`${console}/api/keys`, { method: "POST", credentials: "include", mode: "no-cors", body })),
        outcomeOf(fetch(`${console}/api/keys`, {
          method: "POST",
          credentials: "include",
          headers: { "x-gateway-console": "1", "content-type": "application/json" },
          body
        })),
        outcomeOf(fetch(`${console}/api/session`, { method: "DELETE", credentials: "include" }))
      ])
    }, url)
    // an answer that arrives cannot be read
    for (const outcome of outcomes) assert.oneOf(outcome, ["blocked", "opaque"])
    const framed = await elsewhere.evaluate(async (console) => {
      const frame = document.createElement("iframe")
      frame.src = console
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve))
      document.body.append(frame)
      await loaded
      return frame.contentDocument === null
    }, url)
    assert.isTrue(framed)
    assert.notInclude(await elsewhere.frames().at(-1)?.content() ?? "", "Model Gateway")
    await elsewhere.evaluate((console) => {
      const form = document.createElement("form")
      form.action = `${console}/api/keys`
      form.method = "post"
      form.enctype = "text/plain"
      form.innerHTML = `<input name='{"name":"made by a form","x":"' value='"}'>`
      document.body.append(form)
      form.submit()
    }, url)
    await elsewhere.waitForURL(`${url}/api/keys`)
    assert.include(await elsewhere.content(), "another site")
    await elsewhere.close()
    assert.strictEqual(await keys(), keysBefore)
  })

  it("invalidates its cookie at sign-out", async () => {
    const { context, page, url } = site()
    const cookies = await context.cookies()
    const [cookie] = cookies.filter(({ name }) => name === "gateway_console")
    assert.deepInclude(cookie ?? {}, { httpOnly: true, sameSite: "Strict" })
    assert.strictEqual(await page.evaluate(() => document.cookie), "")
    await page.getByRole("button", { name: "Sign out", exact: true }).click()
    await page.getByRole("heading", { name: "Sign in to the console" }).waitFor()
    await context.addCookies(cookies)
    await page.goto(`${url}/keys`)
    await page.getByRole("heading", { name: "Sign in to the console" }).waitFor()
  })

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
