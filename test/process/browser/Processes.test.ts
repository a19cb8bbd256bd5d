/** The processes of a gateway in a browser. */
import { assert, it } from "@effect/vitest"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { sharedProcesses } from "../../fixture/gateway/SharedGateway.ts"

describeInBrowser("the processes in a browser", () => {
  const gateway = sharedProcesses({ services: ["images"] })
  const site = sharedConsole(gateway)

  it("shows processes as they come and go, and frozen ones", async () => {
    const { errors, goTo, page } = site()
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
    assert.deepStrictEqual(errors, [])
  })
})
