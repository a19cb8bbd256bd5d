/** Every page of the console in light and dark, wide and narrow: it is accessible and fits its window. */
import { assert, it } from "@effect/vitest"
import { Clock, ConfigProvider, Effect, Layer } from "effect"
import OpenAI from "openai"
import { beforeAll } from "vitest"
import { Nats } from "../../../shared/nats/Nats.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { describeInBrowser } from "../../fixture/browser/Browser.ts"
import { sharedConsole } from "../../fixture/browser/ConsolePage.ts"
import { detours } from "../../fixture/client/Detours.ts"
import { providerKey } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
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

const packaged = `
  packaged: { protocol: ai-sdk, apiKey: ${providerKey}, options: { package: "@ai-sdk/openai" } }`

const dayMs = 24 * 60 * 60 * 1_000

describeInBrowser("every page in a browser, in light and dark, wide and narrow", () => {
  const gateway = sharedGateway({
    services: ["images", "speech", "video", "batches"],
    ...detours,
    providers: (baseUrl) => `${detours.providers(baseUrl)}${packaged}`
  })
  const site = sharedConsole(gateway)

  beforeAll(async () => {
    await Effect.runPromise(
      Effect.scoped(Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        yield* store(Array.from({ length: 24 }, (_, index) =>
          usageEvent({
            id: `seed ${index}`,
            time: now - (index % 8) * dayMs,
            model: index % 3 === 0 ? "local-chat" : "free-chat",
            outcome: index % 9 === 0 ? "failure" : "success",
            error: index % 9 === 0 ? "ProviderTimeout" : null,
            durationMs: 100 + 37 * index
          })))
      })).pipe(
        Effect.provide(Nats.layer.pipe(
          Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: gateway().nats.url })))
        ))
      )
    )
  })

  beforeAll(async () => {
    const { client } = site()
    const create = async <A>(path: string, settings: object): Promise<A> => {
      const { body, status } = await client.send<A>("POST", path, settings)
      assert.strictEqual(status, 201, JSON.stringify(body))
      return body
    }
    const company = await create<{ readonly id: string }>("/api/teams", {
      name: "Example Ltd",
      requestsPerMinute: 1_000
    })
    const team = await create<{ readonly id: string }>("/api/teams", { name: "search", parent: company.id })
    const { secret } = await create<{ readonly secret: string }>("/api/keys", { name: "of a team", team: team.id })
    await create("/api/keys", {
      name: "limited",
      disabled: true,
      expiresAt: "2099-01-31T12:34:56Z",
      monthlyBudgetUsd: 0.005,
      requestsPerMinute: 10,
      tokensPerMinute: 9_000
    })
    await create("/api/keys", { name: `"><svg onload="document.title='owned'">` })
    await gateway().untilKnown(secret)

    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: secret, maxRetries: 0 })
    const task = (model: string) => openai.responses.create({ model, input: "Hello", background: true })
    await task("local-chat")
    gateway().provider.behaveOnce({ kind: "silent" })
    const { id: silent } = await task("free-chat")
    await gateway().provider.until(() => gateway().provider.requests.length === 1)
    await openai.responses.cancel(silent)
    const batches = new BatchClient({ url: gateway().url, key: secret })
    gateway().provider.behaveOnce({ kind: "status", status: 400 })
    const { id: batch } = await batches.create("free-chat", 4)
    await batches.ended(batch)
    await eventually(
      () => client.send<{ readonly tasks: ReadonlyArray<{ readonly status: string }> }>("GET", "/api/tasks"),
      ({ body: { tasks } }) => tasks.map(({ status }) => status).toSorted().join() === "cancelled,completed,completed"
    )
  })

  it.each(pages)("%s has no serious accessibility violation and fits its window", async (path, title) => {
    const { checkAppearance, goTo, page } = site()
    await goTo(path, title)
    await page.locator("[aria-busy=true]:visible").first().waitFor({ state: "detached" })
    assert.deepStrictEqual(await checkAppearance(path.slice(1)), [])
  })

  it("caused no script error and no violation of its content security policy", () => {
    assert.deepStrictEqual(site().errors, [])
  })
})
