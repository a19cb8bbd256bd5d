/** Usage and the traces of requests in a browser. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { beforeAll } from "vitest"
import { makeTracing } from "../../../deploy/local/processes/Tracing.ts"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { detours } from "../../fixture/client/Detours.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("usage and requests in a browser", () => {
  let port = 0
  let tracing = makeTracing(port, {})
  beforeAll(async () => {
    port = await freePort()
    tracing = makeTracing(port, {})
  })
  const gateway = sharedGateway({ ...detours, environmentOf: (service) => tracing(service) })
  const site = sharedConsole(gateway, { environment: () => ({ PORT: String(port) }) })

  it("shows a key's usage within seconds, by key and model, as chart, table and file", async () => {
    const { choose, client, goTo, newKey, page, shoot } = site()
    const secret = await newKey("counted")
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret })
    // of another key: a chart of one has no legend
    await (await gateway().request(chat("local-chat"))).text()
    for (let index = 0; index < 3; index++) {
      await openai.chat.completions.create({ model: "local-chat", messages: [{ role: "user", content: "Hello" }] })
    }
    await eventually(
      () =>
        client.send<ReadonlyArray<{ readonly name: string; readonly requestsThisMonth: number }>>("GET", "/api/keys"),
      ({ body }) => body.some(({ name, requestsThisMonth }) => name === "counted" && requestsThisMonth === 3)
    )
    await goTo("/usage", "Usage")
    await choose(page, "Grouping", "By key")
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
    await choose(page, "Grouping", "By team")
    await requests.getByText("no team").first().waitFor()

    await goTo("/requests", "Requests")
    await page.getByRole("row").filter({ hasText: "counted" }).first().getByText("answered").waitFor()
  })

  describe("a request's trace", () => {
    const rows = () => site().page.getByRole("tree", { name: "Trace" }).getByRole("treeitem")
    const details = () => site().page.getByRole("region", { name: "Selected span" })
    /** A stream whose provider failed at first. */
    let requestId = ""

    it("is drawn from ingress to the last call to the provider", async () => {
      const { goTo, page } = site()
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
      const { page } = site()
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
      const { page, violations } = site()
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
      const { page, url } = site()
      await page.getByRole("link", { name: "All requests" }).click()
      await page.getByLabel("Find by x-request-id or trace id").fill(requestId)
      await page.keyboard.press("Enter")
      await rows().nth(4).waitFor()
      await page.getByText("2 calls").waitFor()
      await page.goto(`${url}/requests?id=nobody-knows-it`)
      await page.getByText("Request not found").waitFor()
    })

    it("has no serious accessibility violation and fits its window", async () => {
      const { checkAppearance, page, url } = site()
      await page.goto(`${url}/requests?id=${requestId}`)
      await rows().nth(4).waitFor()
      assert.deepStrictEqual(await checkAppearance("request"), [])
    })

    it("is replaced by a notice if the services send theirs to a collector", async () => {
      const { page } = site()
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
      const { page, url } = site()
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

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
