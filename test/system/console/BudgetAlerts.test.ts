/** What teams have used, and the alerts when their budgets are nearly spent. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { ConfigProvider, DateTime, Effect, Layer } from "effect"
import { readFile, writeFile } from "node:fs/promises"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import OpenAI from "openai"
import { afterAll } from "vitest"
import { Nats } from "../../../shared/nats/Nats.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { audience, sharedIssuer } from "../../fixture/identity/Issuer.ts"
import { store, usageEvent } from "../../fixture/nats/UsageEvents.ts"

const received: Array<{ readonly headers: Headers; readonly body: string }> = []
const receiver = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  received.push({ headers, body })
  response.writeHead(204).end()
}).listen(0, "127.0.0.1")
await once(receiver, "listening")
const origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
afterAll(() => void receiver.close())

const issuer = sharedIssuer()

const teamOfTokens = "team_placeholder"

const gateway = sharedGateway({
  environment: { GATEWAY_WEBHOOK_ORIGINS: origin },
  models: "  dear-chat: { workload: chat, targets: [{ provider: free }], price: { perRequest: 0.4 } }",
  settings: () => `
identities:
  cluster:
    issuer: ${issuer().url}
    audience: ${audience}
    team: ${teamOfTokens}
    principals: [{ match: "system:serviceaccount:*" }]`
})
let client: ConsoleClient

beforeAll(async () => {
  client = await ConsoleClient.signedIn((await gateway().startConsole()).port)
})

interface Team {
  readonly id: string
  readonly requestsThisMonth: number
  readonly spentThisMonthUsd: number
}

const createTeam = async (settings: object): Promise<string> =>
  (await client.send<Team>("POST", "/api/teams", settings)).body.id

/** Stores the usage of a request. */
const use = (key: string, id: string, costUsd: number) =>
  store([usageEvent({ id, key, costUsd, time: DateTime.nowUnsafe().epochMilliseconds })]).pipe(
    Effect.provide(Nats.layer.pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: gateway().nats.url })))
    )),
    Effect.runPromise
  )

/** The day (UTC). */
const today = () => DateTime.formatIsoDateUtc(DateTime.nowUnsafe())

const createKeyOf = async (team: string | null): Promise<string> =>
  (await client.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", { name: "a", team })).body.key.id

describe("teams", () => {
  it("count the usage and cost of the keys that are in them at the time", async () => {
    const organisation = await createTeam({ name: "organisation" })
    const team = await createTeam({ name: "team", parent: organisation })
    const other = await createTeam({ name: "other", parent: organisation })
    const key = await createKeyOf(team)
    const view = async (id: string) => (await client.send<Team>("GET", `/api/teams/${id}`)).body
    // requests and costs are counted into records of their own, one after the other
    const untilUsed = (id: string, requests: number, costUsd: number) =>
      eventually(
        () => view(id),
        (team) => team.requestsThisMonth === requests && team.spentThisMonthUsd === costUsd
      )
    await use(key, "before", 1)
    await untilUsed(organisation, 1, 1)
    await client.send("PATCH", `/api/keys/${key}`, { team: other })
    await use(key, "after", 2)
    await use(await createKeyOf(null), "without", 4)
    await untilUsed(organisation, 2, 3)
    await untilUsed(team, 1, 1)
    await untilUsed(other, 1, 2)

    const costs = async () => {
      const { body: rows } = await client.send<ReadonlyArray<{ readonly team: string; readonly costUsd: number }>>(
        "GET",
        `/api/usage?from=${today()}&to=${today()}&by=team`
      )
      return Object.fromEntries(rows.map(({ costUsd, team }) => [team, costUsd]))
    }
    const counted = await eventually(costs, (costs) => "" in costs)
    assert.deepStrictEqual(counted, { [team]: 1, [other]: 2, "": 4 })
  })

  it("are told by a signed webhook when they have spent 50, 80 and 100 % of their budget, each once", async () => {
    const team = await createTeam({ name: "alerted", monthlyBudgetUsd: 100 })
    const key = await createKeyOf(team)
    const { body: { secret } } = await client.send<{ readonly secret: string }>("PUT", `/api/teams/${team}/webhook`, {
      url: `${origin}/budget`
    })
    await use(key, "half", 60)
    await eventually(async () => received.length, (count) => count === 1)
    await use(key, "all", 40)
    await eventually(async () => received.length, (count) => count === 3)
    const events = await Promise.all(
      received.map(({ body, headers }) =>
        new OpenAI({ apiKey: "none" }).webhooks.unwrap(body, headers, secret) as Promise<unknown>
      )
    )
    const percents = events.map((event) => {
      const { data, type } = event as { readonly type: string; readonly data: Readonly<Record<string, unknown>> }
      assert.strictEqual(type, "budget.threshold_reached")
      assert.deepInclude(data, { id: team, budget_usd: 100, month: today().slice(0, 7) })
      return data["percent"]
    })
    assert.strictEqual(percents[0], 50)
    assert.deepStrictEqual(percents.toSorted(), [100, 50, 80])
    // each once: the next usage is counted, and no further alert has come
    await use(key, "more", 10)
    await eventually(
      async () => (await client.send<Team>("GET", `/api/teams/${team}`)).body.requestsThisMonth,
      (requests) => requests === 3
    )
    assert.lengthOf(received, 3)
    assert.strictEqual((await client.send("DELETE", `/api/teams/${team}/webhook`)).status, 204)
    assert.strictEqual((await client.send("GET", `/api/teams/${team}/webhook`)).status, 404)
  })

  it("are told when a request with a token instead of a key has spent half of their budget", async () => {
    const before = received.length
    const team = await createTeam({ name: "of tokens", monthlyBudgetUsd: 0.7 })
    const { body: { secret } } = await client.send<{ readonly secret: string }>("PUT", `/api/teams/${team}/webhook`, {
      url: `${origin}/budget`
    })
    const { body: rotated } = await client.send<{ readonly secret: string; readonly formerSecretUntil: string }>(
      "POST",
      `/api/teams/${team}/webhook/rotate`
    )
    assert.isAbove(Date.parse(rotated.formerSecretUntil), DateTime.nowUnsafe().epochMilliseconds)
    const file = gateway().catalogueFile
    await writeFile(file, (await readFile(file, "utf8")).replace(teamOfTokens, team))
    const token = await issuer().token()
    await eventually(
      () => gateway().request(chat("dear-chat"), { headers: { authorization: `Bearer ${token}` } }),
      ({ status }) => status === 200
    )
    await eventually(async () => received.length, (count) => count > before)
    const [alert, ...others] = received.slice(before)
    assert.isDefined(alert)
    assert.isEmpty(others)
    for (const valid of [secret, rotated.secret]) {
      const event = await new OpenAI({ apiKey: "none" }).webhooks.unwrap(alert.body, alert.headers, valid) as unknown
      assert.deepNestedInclude(event, { "data.id": team, "data.percent": 50, "data.budget_usd": 0.7 })
    }
    const { body: rows } = await client.send<ReadonlyArray<{ readonly key: string; readonly team: string }>>(
      "GET",
      `/api/usage?from=${today()}&to=${today()}&by=key&by=team`
    )
    assert.match(rows.find((row) => row.team === team)?.key ?? "", /^jwt_/)

    const deliveries = `/api/teams/${team}/webhook/deliveries`
    const [delivery, ...more] = await eventually(
      async () => (await client.send<ReadonlyArray<Record<string, unknown>>>("GET", deliveries)).body,
      ([latest]) => latest?.["status"] === "delivered"
    )
    assert.isEmpty(more)
    assert.deepInclude(delivery, { type: "budget.threshold_reached", subject: team, attempts: 1, outcome: "204" })
    const id = alert.headers.get("webhook-id") ?? ""
    assert.strictEqual(delivery?.["id"], id)
    assert.strictEqual((await client.send("POST", `${deliveries}/${id}/resend`)).status, 200)
    await eventually(async () => received.length, (count) => count === before + 2)
    assert.strictEqual(received.at(-1)?.headers.get("webhook-id"), id)
  })
})
