/** The API reference in a real browser: it renders, and sends requests only to the gateway. */
import { assert, it } from "@effect/vitest"
import { describeInBrowser, pageErrors, sharedBrowser } from "../../fixture/browser/Browser.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("the API reference in a browser", () => {
  const gateway = sharedGateway({ workers: 0 })
  const open = sharedBrowser()

  it("shows the operations without a key, without errors, and without requests to other hosts", async () => {
    const context = await open({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" })
    const page = await context.newPage()
    const heard = pageErrors(page)
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(request.url()))
    const { url } = gateway()

    await page.goto(`${url}/docs`)
    const operation = page.locator("article", {
      has: page.getByRole("heading", { name: "Create a model response from a conversation" })
    })
    await page.getByRole("link", { name: "Create a model response from a conversation" }).first().click()
    assert.isTrue(await operation.isVisible())

    await operation.getByText("Request: application/json").click()
    assert.isTrue(await operation.getByText("Randomness: at 0").isVisible())

    // the command to copy has the required headers and no optional ones
    await operation.getByText("Example: One answer in JSON").click()
    const request = await operation.getByText("curl").first().innerText()
    assert.include(request, "/v1/chat/completions")
    assert.notMatch(request, /x-translation|x-stainless-timeout|traceparent/)
    await page.waitForLoadState("networkidle")

    const elsewhere = asked.filter((address) => !/^(?:data|blob):/.test(address) && !address.startsWith(`${url}/`))
    assert.deepStrictEqual(elsewhere, [])
    assert.deepStrictEqual(heard, [])
    await context.close()
  })
})
