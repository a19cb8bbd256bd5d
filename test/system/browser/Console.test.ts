/** The console in a real browser over a whole gateway: changes made in it take effect for the gateway's clients. */
import { assert, describe, it } from "@effect/vitest"
import axe, { type AxeResults } from "axe-core"
import { ConfigProvider, DateTime, Effect, Layer } from "effect"
import { mkdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import OpenAI from "openai"
import type { BrowserContext, Locator, Page } from "playwright-core"
import { beforeAll } from "vitest"
import { makeTracing } from "../../../deploy/local/processes/Tracing.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { noBrowser, pageErrors, sharedBrowser } from "../../fixture/gateway/Browser.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { detours } from "../../fixture/client/Detours.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { providerKey, testAdminToken } from "../../fixture/gateway/Gateway.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { store, usageEvent } from "../../fixture/nats/UsageEvents.ts"

const pages = [
  ["/keys", "API Keys"],
  ["/teams", "Teams"],
  ["/usage", "Usage"],
  ["/requests", "Requests"],
  ["/tasks", "Tasks"],
  ["/models", "Models & Providers"],
  ["/queues", "Queues & Workers"],
  ["/playground", "Playground"],
  ["/api-reference", "Admin API"]
] as const

/** Screenshots for reviewers. */
const screenshots = join(import.meta.dirname, "screenshots")

const reason = noBrowser === undefined ? "" : ` (left out: ${noBrowser})`

describe.skipIf(noBrowser !== undefined)(`the console in a browser${reason}`, { timeout: 120_000 }, () => {
  let port = 0
  let tracing = makeTracing(port, {})
  beforeAll(async () => {
    port = await freePort()
    tracing = makeTracing(port, {})
  })
  const gateway = sharedGateway({
    services: ["images", "speech", "video", "batches"],
    environmentOf: (service) => tracing(service),
    ...detours,
    providers: (baseUrl) =>
      `${detours.providers(baseUrl)}
  packaged: { protocol: ai-sdk, apiKey: ${providerKey}, options: { package: "@ai-sdk/openai" } }`
  })
  const open = sharedBrowser()
  let url = ""
  /** A signed-in browser context. */
  let context: BrowserContext
  let page: Page
  let heard: ReadonlyArray<string> = []

  beforeAll(async () => {
    mkdirSync(screenshots, { recursive: true })
    await gateway().startConsole({ PORT: String(port) })
    url = `http://127.0.0.1:${port}`
    context = await open({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" })
    page = await context.newPage()
    page.setDefaultTimeout(30_000)
    heard = pageErrors(page)
  })

  const goTo = async (path: string, title: string) => {
    await page.goto(`${url}${path}`)
    await page.getByRole("heading", { level: 1, name: title }).waitFor()
  }

  const shoot = async (name: string) => {
    // animations have ended
    await page.evaluate(() =>
      Promise.allSettled(
        document.getAnimations()
          .filter((animation) => Number.isFinite(animation.effect?.getComputedTiming().endTime))
          .map((animation) => animation.finished)
      )
    )
    // charts draw one frame after they get their size
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
    await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true, animations: "disabled" })
  }

  /** The serious violations that axe finds, one per line. */
  const violations = async (): Promise<ReadonlyArray<string>> => {
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })")
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ help, id, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`)
  }

  /** Takes screenshots of the page, light and wide, dark and narrow: each colour and each width once. Returns its problems. */
  const checkAppearance = async (name: string): Promise<ReadonlyArray<string>> => {
    const found: Array<string> = []
    for (const [colorScheme, width] of [["light", 1280], ["dark", 380]] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      await page.setViewportSize({ width, height: 860 })
      await page.waitForFunction(
        (scheme) => document.documentElement.dataset["mantineColorScheme"] === scheme,
        colorScheme
      )
      await shoot(`${name}-${colorScheme}-${width}`)
      found.push(...(await violations()).map((violation) => `${colorScheme} ${width}: ${violation}`))
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
      if (overflow > 0) found.push(`${colorScheme} ${width}: ${overflow} pixels too wide`)
    }
    await page.emulateMedia({ colorScheme: "light" })
    await page.setViewportSize({ width: 1280, height: 860 })
    return found
  }

  const createKey = async (name: string, fill?: (dialog: Locator) => Promise<void>): Promise<string> => {
    await goTo("/keys", "API Keys")
    await page.getByRole("button", { name: "Create key" }).first().click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Name").fill(name)
    await fill?.(dialog)
    await dialog.getByRole("button", { name: "Create key" }).click()
    const secret = await dialog.getByTestId("secret").innerText()
    assert.match(secret, /^sk-gw-[0-9A-Za-z]{32}$/)
    return secret
  }

  it("requires the admin token before it shows anything", async () => {
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

  it("creates teams with a shared limit, and a key in one of them that the limit applies to", async () => {
    const createTeam = async (name: string, fill: (dialog: Locator) => Promise<void>) => {
      await page.getByRole("button", { name: "Create team" }).first().click()
      const dialog = page.getByRole("dialog")
      await dialog.getByLabel("Name").fill(name)
      await fill(dialog)
      await dialog.getByRole("button", { name: "Create team" }).click()
      await page.getByRole("row").filter({ hasText: name }).waitFor()
    }
    const choose = async (dialog: Locator, label: string, option: string) => {
      await dialog.getByRole("combobox", { name: label }).click()
      await page.getByRole("option", { name: option }).click()
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
    await key.getByRole("combobox", { name: "Team" }).click()
    await page.getByRole("option", { name: "search" }).click()
    await key.getByRole("button", { name: "Limits and models" }).click()
    assert.strictEqual(await key.getByLabel("Weight").inputValue(), "7")
    assert.isTrue(await key.getByRole("radio", { name: "Batch" }).isChecked())
    await key.getByRole("button", { name: "Cancel" }).click()
  })

  it("creates a key that the official client can use, and revokes it", async () => {
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

  it("shows a key's usage within seconds, by key and model, as chart, table and file", async () => {
    const secret = await createKey("counted")
    await gateway().untilKnown(secret)
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret })
    for (let index = 0; index < 3; index++) {
      await openai.chat.completions.create({ model: "local-chat", messages: [{ role: "user", content: "Hello" }] })
    }
    await eventually(
      () => page.evaluate(async () => (await fetch("/api/keys")).text()),
      (text) => /"name":"counted".*?"requestsThisMonth":3\b/.test(text)
    )
    await goTo("/usage", "Usage")
    await page.getByRole("combobox", { name: "Grouping" }).click()
    await page.getByRole("option", { name: "By key" }).click()
    const requests = page.getByRole("region", { name: "Requests" })
    await requests.getByText("counted").waitFor()
    const drawing = requests.getByRole("img", { name: "Requests by day" })
    const { height = 0, width = 0 } = await drawing.boundingBox() ?? {}
    // today is the last bar
    await drawing.hover({ position: { x: width - 10, y: height / 2 } })
    const values = requests.getByRole("tooltip")
    await values.getByText(/^counted$/).waitFor()
    assert.match(await values.innerText(), /\bcounted\s+3\b/)
    await shoot("usage-values")
    await requests.getByText("Table", { exact: true }).click()
    const headings = await requests.getByRole("columnheader").allInnerTexts()
    const today = requests.getByRole("row").nth(1)
    assert.strictEqual(await today.getByRole("cell").nth(headings.indexOf("counted")).innerText(), "3")
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "CSV" }).click()
    ])
    assert.match(download.suggestedFilename(), /^usage-[\d-]+\.csv$/)
    await page.getByRole("combobox", { name: "Grouping" }).click()
    await page.getByRole("option", { name: "By team" }).click()
    await requests.getByText("no team").first().waitFor()

    await goTo("/requests", "Requests")
    await page.getByRole("row").filter({ hasText: "counted" }).first().getByText("answered").waitFor()
  })

  it("shows tasks while they run, stops and deletes them, and downloads answers with a key of their owner", async () => {
    await goTo("/tasks", "Tasks")
    await page.getByText("No tasks").waitFor()
    const secret = await createKey("in the background")
    const other = await createKey("another owner")
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret, maxRetries: 0 })
    const create = () =>
      openai.responses.create({ model: "local-chat", input: "Hello", background: true }).then(({ id }) => id)
    await gateway().untilKnown(secret)
    const answered = await create()
    await goTo("/tasks", "Tasks")
    const row = (id: string) => page.getByRole("table", { name: "Tasks" }).getByRole("row").filter({ hasText: id })
    await row(answered).getByText("completed").waitFor()
    await row(answered).getByText("in the background").waitFor()

    // the page follows without a reload
    gateway().provider.behaveOnce({ kind: "silent" })
    const silent = await openai.responses.create({ model: "free-chat", input: "Hello", background: true })
    await row(silent.id).getByText("running").waitFor()
    const act = async (id: string, action: string) => {
      await page.getByRole("button", { name: `Actions for ${id}` }).click()
      await page.getByRole("menuitem", { name: action }).click()
    }
    await act(silent.id, "Cancel")
    await row(silent.id).getByText("cancelled").waitFor()
    await gateway().provider.until(() => gateway().provider.requests.at(-1)?.outcome === "aborted")
    assert.strictEqual((await openai.responses.retrieve(silent.id)).status, "cancelled")

    await act(answered, "Download the answer")
    const dialog = page.getByRole("dialog", { name: "Download the answer" })
    await dialog.getByLabel("API key").fill(other)
    await dialog.getByRole("button", { name: "Download" }).click()
    await page.getByRole("alert").getByText(/not found/i).waitFor()
    await dialog.getByLabel("API key").fill(secret)
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      dialog.getByRole("button", { name: "Download" }).click()
    ])
    assert.strictEqual(download.suggestedFilename(), `${answered}.json`)
    const content = JSON.parse(await readFile(await download.path(), "utf8")) as { readonly id: string }
    assert.strictEqual(content.id, answered)
    await dialog.waitFor({ state: "detached" })

    await page.getByRole("combobox", { name: "State" }).click()
    await page.getByRole("option", { name: "cancelled" }).click()
    await row(answered).waitFor({ state: "detached" })
    await act(silent.id, "Delete")
    await page.getByRole("dialog", { name: "Delete this task?" }).getByRole("button", { name: "Delete task" }).click()
    await row(silent.id).waitFor({ state: "detached" })
    const gone = await openai.responses.retrieve(silent.id).then(() => assert.fail("found"), (error: unknown) => error)
    assert.instanceOf(gone, OpenAI.NotFoundError)

    await page.setViewportSize({ width: 380, height: 860 })
    await goTo("/tasks", "Tasks")
    const card = page.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: answered })
    await card.getByText("completed").waitFor()
    await page.setViewportSize({ width: 1280, height: 860 })
  })

  it("shows the progress of batches, stops them, and downloads their files", async () => {
    const secret = await createKey("in batches")
    const batches = new BatchClient({ url: gateway().url, key: secret })
    await gateway().untilKnown(secret)
    gateway().provider.behaveOnce({ kind: "silent" })
    const { id } = await batches.create("free-chat", 4)
    await goTo("/tasks", "Tasks")
    const row = page.getByRole("table", { name: "Tasks" }).getByRole("row").filter({ hasText: id })
    await row.getByText("in progress").waitFor()
    await row.getByText("3 of 4").waitFor()
    await row.getByRole("button", { name: `Actions for ${id}` }).click()
    await page.getByRole("menuitem", { name: "Cancel" }).click()
    await row.getByText("cancelled").waitFor()
    await row.getByText("4 of 4, 1 failed").waitFor()
    for (const [label, lines] of [["answers", 3], ["errors", 1]] as const) {
      await row.getByRole("button", { name: `Actions for ${id}` }).click()
      await page.getByRole("menuitem", { name: `Download the ${label}` }).click()
      const dialog = page.getByRole("dialog", { name: `Download the ${label}` })
      await dialog.getByLabel("API key").fill(secret)
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        dialog.getByRole("button", { name: "Download" }).click()
      ])
      assert.strictEqual(download.suggestedFilename(), `${id}-${label}.jsonl`)
      const content = await readFile(await download.path(), "utf8")
      assert.lengthOf(content.trimEnd().split("\n"), lines)
      await dialog.waitFor({ state: "detached" })
    }
  })

  describe("a request's trace", () => {
    const rows = () => page.getByRole("tree", { name: "Trace" }).getByRole("treeitem")
    const details = () => page.getByRole("region", { name: "Selected span" })
    /** A stream whose provider failed at first. */
    let requestId = ""

    it("is drawn from ingress to the last call to the provider", async () => {
      gateway().provider.behaveInTurn(
        "patient-chat",
        { kind: "status", status: 503 },
        { kind: "paced", chunks: 10, everyMs: 30 }
      )
      const response = await gateway().request(chat("patient-chat", { stream: true }))
      await response.text()
      requestId = response.headers.get("x-request-id") ?? assert.fail("the answer names no request")
      await goTo("/requests", "Requests")
      await page.getByRole("row").filter({ hasText: "patient-chat" }).first().getByRole("link").click()
      await page.getByRole("heading", { level: 1, name: "chat.completions" }).waitFor()
      await rows().nth(4).waitFor()
      const expected = [
        /^Ingress POST \/v1\/chat\/completions begins at 0 ms, lasts [\d.]+ m?s$/,
        /^Queue jobs3?\.chat\.default begins at /,
        /^Worker chat · patient-chat begins at /,
        /^Attempt 1 ProviderFailed patient · patient-chat begins at /,
        /^Attempt 2 retry patient · patient-chat begins at .*, lasts .* first token at [\d.]+ m?s$/
      ]
      for (const [index, name] of expected.entries()) {
        await rows().nth(index).and(page.getByRole("treeitem", { name })).waitFor()
      }
      assert.deepStrictEqual(
        await rows().evaluateAll((rows) => rows.map((row) => row.ariaLevel)),
        ["1", "2", "3", "4", "4"]
      )
    })

    it("opens at the failure, and all its attributes are reachable by keyboard", async () => {
      await details().getByText("ProviderFailed", { exact: true }).waitFor()
      await rows().and(page.locator("[aria-selected=true]")).focus()
      await page.keyboard.press("Home")
      await details().getByText(requestId, { exact: true }).waitFor()
      await page.keyboard.press("ArrowDown")
      await details().getByText(/^jobs3?\.chat\.default$/).waitFor()
      await details().getByText("1. published", { exact: true }).waitFor()
      await page.keyboard.press("End")
      await details().getByText("gen_ai.response.finish_reasons", { exact: true }).waitFor()
      assert.strictEqual(await page.evaluate(() => document.activeElement?.ariaSelected), "true")
    })

    it("has a table view", async () => {
      await page.getByText("Table", { exact: true }).click()
      const table = page.getByRole("table", { name: "Spans" })
      assert.deepStrictEqual(
        await table.getByRole("rowheader").allInnerTexts(),
        ["Ingress", "Queue", "Worker", "Attempt 1", "Attempt 2, retry"]
      )
      assert.deepStrictEqual(await violations(), [])
      await page.getByText("Waterfall", { exact: true }).click()
    })

    it("is found by the request id that the client got", async () => {
      await page.getByRole("link", { name: "All requests" }).click()
      await page.getByLabel("Find by x-request-id or trace id").fill(requestId)
      await page.keyboard.press("Enter")
      await rows().nth(4).waitFor()
      await page.getByText("2 calls").waitFor()
      await page.goto(`${url}/requests?id=nobody-knows-it`)
      await page.getByText("Request not found").waitFor()
    })

    it("has no serious accessibility violation and fits its window", async () => {
      await page.goto(`${url}/requests?id=${requestId}`)
      await rows().nth(4).waitFor()
      assert.deepStrictEqual(await checkAppearance("request"), [])
    })

    it("is replaced by a notice if the services send theirs to a collector", async () => {
      const other = await gateway().startConsole({ CONSOLE_OTLP_TOKEN: "" })
      // the same host, on which the browser has a session
      await page.goto(`http://127.0.0.1:${other.port}/requests`)
      await page.getByRole("row").filter({ hasText: "patient-chat" }).first().getByRole("link").click()
      await page.getByText("The services send their traces to a collector").waitFor()
      await page.getByRole("button", { name: "Copy the trace id" }).waitFor()
      await page.getByText("2 calls").waitFor()
      await other.terminate()
    })

    it("shows any content as text", async () => {
      const attack = `"><img src=x onerror="document.title='hacked'">`
      const { OTEL_EXPORTER_OTLP_TRACES_HEADERS = "" } = tracing("chat")
      const text = { stringValue: attack }
      const span = { traceId: "hostile", kind: 3, startTimeUnixNano: "1000000", endTimeUnixNano: "3000000" }
      const response = await fetch(`${url}/otlp/v1/traces`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: decodeURIComponent(OTEL_EXPORTER_OTLP_TRACES_HEADERS.replace("authorization=", ""))
        },
        body: JSON.stringify({
          resourceSpans: [{
            resource: { attributes: [{ key: "service.name", value: text }] },
            scopeSpans: [{
              spans: [{
                ...span,
                spanId: attack,
                name: attack,
                attributes: ["gen_ai.provider.name", "error.type", "gateway.provider.reason", attack].map((key) => ({
                  key,
                  value: text
                })),
                events: [{ name: attack, timeUnixNano: "2000000" }],
                links: [{ traceId: attack, spanId: attack }]
              }]
            }]
          }]
        })
      })
      assert.strictEqual(response.status, 200)
      await page.goto(`${url}/requests?id=hostile`)
      await details().getByText(`1. ${attack}`, { exact: true }).waitFor()
      assert.strictEqual(await page.title(), "Request · Model Gateway")
      assert.strictEqual(await page.locator("img[src=x]").count(), 0)
      await page.getByRole("link", { name: "its trace" }).click()
      await page.getByText("Request not found").waitFor()
    })
  })

  describe("the playground", () => {
    const choose = async (operation: string) => {
      await page.getByRole("combobox", { name: "Operation" }).click()
      await page.getByRole("option", { name: operation, exact: true }).click()
      await page.getByRole("form", { name: operation, exact: true }).waitFor()
    }
    const send = () => page.getByRole("button", { name: "Send" }).click()
    const answered = () => page.getByText(/^Answered in/).waitFor()

    it("streams a chat", async () => {
      await createKey("for the playground")
      await page.getByRole("button", { name: "Try it in the playground" }).click()
      await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor()
      await page.getByRole("combobox", { name: "Model" }).click()
      await page.getByRole("option", { name: "free-chat" }).click()
      gateway().provider.behaveInTurn("free-chat", { kind: "paced", chunks: 400, everyMs: 50 })
      await send()
      const text = page.getByTestId("text")
      await text.waitFor()
      const early = (await text.innerText()).length
      await page.waitForFunction(
        (early) => (document.querySelector("[data-testid=text]")?.textContent?.length ?? 0) > early,
        early
      )
      // it still runs, and stopping it ends the provider's work
      await page.getByRole("button", { name: "Stop" }).click()
      await page.getByText(/^Stopped after/).waitFor()
      await gateway().provider.until(() => gateway().provider.requests.at(-1)?.outcome === "aborted")
    })

    it("shows a picture, speech and a video", async () => {
      await choose("Image")
      await send()
      await answered()
      await page.waitForFunction(() =>
        (document.querySelector<HTMLImageElement>("img.media")?.naturalWidth ?? 0) === 1024
      )
      await shoot("playground-image")

      await choose("Speech")
      await send()
      await answered()
      await page.waitForFunction(() => (document.querySelector("audio")?.duration ?? 0) > 1)

      await choose("Video")
      await send()
      await answered()
      await page.waitForFunction(() => {
        const video = document.querySelector("video")
        return video !== null && video.videoWidth === 320 && video.currentTime > 0.2
      })
      await shoot("playground-video")
    })

    it("shows the gateway's errors, and the request as a command without the key", async () => {
      await choose("Chat")
      await page.getByLabel("API key").fill(`sk-gw-${"0".repeat(32)}`)
      await send()
      await page.getByRole("alert").getByText("The gateway rejected the request: 401").waitFor()
      await page.getByRole("tab", { name: "curl" }).click()
      const curl = await page.getByRole("region", { name: "The request for a terminal" }).innerText()
      assert.include(curl, `curl -sS '${gateway().url}/v1/chat/completions'`)
      assert.include(curl, "authorization: Bearer $KEY")
      assert.notInclude(curl, "sk-gw-")
    })
  })

  it("shows each provider's address, and names the engines in the workers themselves", async () => {
    await goTo("/models", "Models & Providers")
    const provider = (name: string) => page.getByRole("region", { name: `Provider ${name}`, exact: true })
    await provider("local").getByText("inside the workers").waitFor()
    await provider("free").getByText(gateway().provider.baseUrl).waitFor()
    await provider("packaged").getByText("the default of its package").waitFor()
    await provider("packaged").getByText("from the catalogue").waitFor()
    assert.notInclude(await page.content(), "provider-secret")
  })

  it("shows processes as they come and go, and frozen ones", async () => {
    await goTo("/queues", "Queues & Workers")
    const rows = page.getByRole("table", { name: "Processes" }).getByRole("row")
    const images = rows.filter({ hasText: "images" })
    await images.getByText("ready").waitFor()
    const queue = page.getByRole("region", { name: "Queue chat default" })
    await queue.getByText("1 worker").waitFor()
    const worker = await gateway().startWorker()
    await queue.getByText("2 workers").waitFor()
    worker.freeze()
    // on a busy machine another process may answer too late once
    const row = rows.filter({ has: page.getByText(new RegExp(` · ${worker.pid}$`)) })
    await row.getByText("silent").waitFor()
    await queue.getByText("1 worker").waitFor()
    worker.thaw()
    await queue.getByText("2 workers").waitFor()
    await worker.terminate()
    await queue.getByText("1 worker").waitFor()
  })

  it("executes nothing from a key's name or a model's answer", async () => {
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
    await page.getByRole("combobox", { name: "Model" }).click()
    await page.getByRole("option", { name: "free-chat" }).click()
    // the provider echoes the question
    await page.getByLabel("Message").fill(attacks.join("\n"))
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByText(/^Answered in/).waitFor()
    await page.getByTestId("text").getByText(attacks[0] ?? "").waitFor()
    assert.strictEqual(await page.title(), "Playground · Model Gateway")
    assert.strictEqual(await page.locator("img[src=x], svg[onload]").count(), 0)
  })

  it("keeps other sites out of a signed-in browser", async () => {
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

  describe("every page, in light and dark, wide and narrow", () => {
    beforeAll(async () => {
      if (noBrowser !== undefined) return
      const day = 24 * 3_600_000
      const now = DateTime.nowUnsafe().epochMilliseconds
      const events = Array.from({ length: 24 }, (_, index) =>
        usageEvent({
          id: `seed ${index}`,
          time: now - (index % 8) * day,
          model: index % 3 === 0 ? "local-chat" : "free-chat",
          outcome: index % 9 === 0 ? "failure" : "success",
          error: index % 9 === 0 ? "ProviderTimeout" : null,
          durationMs: 100 + 37 * index
        }))
      await Effect.runPromise(
        Effect.scoped(store(events)).pipe(
          Effect.provide(Nats.layer.pipe(
            Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: gateway().nats.url })))
          ))
        )
      )
    })

    it.each(pages)("%s has no serious accessibility violation and fits its window", async (path, title) => {
      await page.setViewportSize({ width: 1280, height: 860 })
      await goTo(path, title)
      await page.locator("[aria-busy=true]:visible").first().waitFor({ state: "detached" })
      assert.deepStrictEqual(await checkAppearance(path.slice(1)), [])
    })
  })

  it("invalidates its cookie at sign-out", async () => {
    await page.setViewportSize({ width: 1280, height: 860 })
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
    assert.deepStrictEqual(heard, [])
  })
})
