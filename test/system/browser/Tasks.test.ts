/** Requests in the background and batches in a browser. */
import { assert, it } from "@effect/vitest"
import { readFile } from "node:fs/promises"
import OpenAI from "openai"
import type { Locator } from "playwright-core"
import { beforeAll } from "vitest"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("tasks in a browser", () => {
  const gateway = sharedGateway({ services: ["batches"] })
  const site = sharedConsole(gateway)
  beforeAll(() => site().page.clock.install())

  /** Waits for what the page shows once it has asked again: its clock skips the times between. */
  const shows = (row: Locator, text: string) =>
    eventually(async () => {
      await site().page.clock.fastForward(3_000)
      return row.getByText(text).isVisible()
    }, Boolean)

  it("shows tasks while they run, stops and deletes them, and downloads answers with a key of their owner", async () => {
    const { choose, goTo, newKey, page } = site()
    await goTo("/tasks", "Tasks")
    await page.getByText("No tasks").waitFor()
    const secret = await newKey("in the background")
    const other = await newKey("another owner")
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret, maxRetries: 0 })
    const create = () =>
      openai.responses.create({ model: "local-chat", input: "Hello", background: true }).then(({ id }) => id)
    const answered = await create()
    await goTo("/tasks", "Tasks")
    const row = (id: string) => page.getByRole("table", { name: "Tasks" }).getByRole("row").filter({ hasText: id })
    await shows(row(answered), "completed")
    await row(answered).getByText("in the background").waitFor()

    // the page follows without a reload
    gateway().provider.behaveOnce({ kind: "silent" })
    const silent = await openai.responses.create({ model: "free-chat", input: "Hello", background: true })
    await shows(row(silent.id), "running")
    const act = async (id: string, action: string) => {
      await page.getByRole("button", { name: `Actions for ${id}` }).click()
      await page.getByRole("menuitem", { name: action }).click()
    }
    await act(silent.id, "Cancel")
    await shows(row(silent.id), "cancelled")
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

    await choose(page, "State", "cancelled")
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
    const { goTo, newKey, page } = site()
    const secret = await newKey("in batches")
    const batches = new BatchClient({ url: gateway().url, key: secret })
    gateway().provider.behaveOnce({ kind: "silent" })
    const { id } = await batches.create("free-chat", 4)
    await goTo("/tasks", "Tasks")
    const row = page.getByRole("table", { name: "Tasks" }).getByRole("row").filter({ hasText: id })
    await shows(row, "in progress")
    await shows(row, "3 of 4")
    await row.getByRole("button", { name: `Actions for ${id}` }).click()
    await page.getByRole("menuitem", { name: "Cancel" }).click()
    await shows(row, "cancelled")
    await shows(row, "4 of 4, 1 failed")
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

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
