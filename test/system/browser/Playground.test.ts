/** The playground and the list of models in a browser. */
import { assert, describe, it } from "@effect/vitest"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { providerKey } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("the playground and the models in a browser", () => {
  const gateway = sharedGateway({
    services: ["images", "speech", "video"],
    providers: () => `
  packaged: { protocol: ai-sdk, apiKey: ${providerKey}, options: { package: "@ai-sdk/openai" } }`
  })
  const site = sharedConsole(gateway)

  describe("the playground", () => {
    const operate = async (operation: string) => {
      const { choose, page } = site()
      await choose(page, "Operation", operation)
      await page.getByRole("form", { name: operation, exact: true }).waitFor()
    }
    const send = () => site().page.getByRole("button", { name: "Send" }).click()
    const answered = () => site().page.getByText(/^Answered in/).waitFor()

    it("streams a chat", async () => {
      const { choose, createKey, page } = site()
      await createKey("for the playground")
      await page.getByRole("button", { name: "Try it in the playground" }).click()
      await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor()
      await choose(page, "Model", "free-chat")
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
      const { page, shoot } = site()
      await operate("Image")
      await send()
      await answered()
      await page.waitForFunction(() =>
        (document.querySelector<HTMLImageElement>("img.media")?.naturalWidth ?? 0) === 1024
      )
      await shoot("playground-image")

      await operate("Speech")
      await send()
      await answered()
      await page.waitForFunction(() => (document.querySelector("audio")?.duration ?? 0) > 1)

      await operate("Video")
      await send()
      await answered()
      await page.waitForFunction(() => {
        const video = document.querySelector("video")
        return video !== null && video.videoWidth === 320 && video.currentTime > 0.2
      })
      await shoot("playground-video")
    })

    it("shows the gateway's errors, and the request as a command without the key", async () => {
      const { page } = site()
      await operate("Chat")
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
    const { goTo, page } = site()
    await goTo("/models", "Models & Providers")
    const provider = (name: string) => page.getByRole("region", { name: `Provider ${name}`, exact: true })
    await provider("local").getByText("inside the workers").waitFor()
    await provider("free").getByText(gateway().provider.baseUrl).waitFor()
    await provider("packaged").getByText("the default of its package").waitFor()
    await provider("packaged").getByText("from the catalogue").waitFor()
    assert.notInclude(await page.content(), "provider-secret")
  })

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
