/** Tokens in place of API keys through the whole gateway, like those of a Kubernetes cluster's service accounts. */
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, Layer, type Scope } from "effect"
import { readFile, writeFile } from "node:fs/promises"
import type { IncomingMessage } from "node:http"
import OpenAI from "openai"
import { WebSocket } from "ws"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { audience, sharedIssuer } from "../../fixture/identity/Issuer.ts"
import { eventsIn, rowsAt, usageProcess } from "../../fixture/nats/UsageEvents.ts"
import type { ControlNats } from "../../../shared/nats/Nats.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as Team from "../../../shared/teams/Team.ts"
import * as TeamsOfKeys from "../../../shared/teams/TeamsOfKeys.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"

const issuer = sharedIssuer()

const shared = sharedGateway({
  ingresses: 2,
  // an ingress may have to lease what another holds
  environment: { GATEWAY_LIMIT_WAIT_MS: "3000" },
  models: "  dear-chat: { workload: chat, targets: [{ provider: free }], price: { perRequest: 0.4 } }",
  settings: () => `
identities:
  cluster:
    issuer: ${issuer().url}
    audience: ${audience}
    team: team_others
    principals:
      - { match: "system:serviceaccount:slow:*", requestsPerMinute: 1, team: null }
      - { match: "system:serviceaccount:moving:*", team: team_former }
      - { match: "system:serviceaccount:silver:*", team: team_silver }
      - { match: "system:serviceaccount:blue:*", allowedModels: [local-chat], team: null }
      - { match: "system:serviceaccount:*" }`
})

const body = { model: "local-chat", messages: [{ role: "user", content: "hello" }] }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe("a service account's token", () => {
  it("calls chat with an official client, and its usage is its owner's", async () => {
    const token = await issuer().token()
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: token, maxRetries: 0 })
    const answer = await client.chat.completions.create({
      model: "local-chat",
      messages: [{ role: "user", content: "hello" }]
    })
    assert.strictEqual(answer.object, "chat.completion")
    const events = await eventually(() => eventsIn(shared().nats), ({ length }) => length > 0)
    assert.match(events.at(-1)?.key ?? "", /^jwt_[\w-]{22}$/)
    const { data } = await client.models.list()
    assert.deepStrictEqual(data.map(({ id }) => id), ["local-chat"])
    const refused = await client.chat.completions.create({
      model: "free-chat",
      messages: [{ role: "user", content: "hello" }]
    }).catch((error: unknown) => error)
    assert.deepInclude(refused, { status: 403, code: "model_not_allowed" })
  })

  it("is accepted in the header of each dialect", async () => {
    const token = await issuer().token()
    const messages = await shared().request({ ...body, max_tokens: 9 }, {
      path: "/v1/messages",
      headers: { authorization: "", "x-api-key": token, "anthropic-version": "2023-06-01" }
    })
    assert.strictEqual(messages.status, 200)
    const gemini = await shared().request({ contents: [{ parts: [{ text: "hello" }] }] }, {
      path: "/v1beta/models/local-chat:generateContent",
      headers: { authorization: "", "x-goog-api-key": token }
    })
    assert.strictEqual(gemini.status, 200)
  })

  it("that is refused gets the failed check, and not itself, in the dialect's error", async () => {
    const token = await issuer().token({ aud: "another" })
    const answer = await shared().request(body, { headers: bearer(token) })
    assert.strictEqual(answer.status, 401)
    const { error } = await answer.json() as { readonly error: { readonly code: string; readonly message: string } }
    assert.strictEqual(error.code, "invalid_api_key")
    assert.include(error.message, "audience (aud)")
    assert.notInclude(error.message, token.slice(0, 20))
    assert.notInclude(shared().log, token.slice(-40))
  })

  it("has limits that hold across ingresses", async () => {
    const tokens = await Promise.all([0, 1, 2].map(() => issuer().token({ sub: "system:serviceaccount:slow:chat" })))
    const answers = await Promise.all(
      tokens.map((token, at) => {
        const ingress = shared().ingresses[at % 2]
        return shared().request(body, { headers: bearer(token), ...(ingress === undefined ? {} : { ingress }) })
      })
    )
    assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 429, 429])
  })

  it("opens a WebSocket, the first time it is seen and later", async () => {
    const token = await issuer().token({ sub: "system:serviceaccount:blue:socket" })
    const typesOf = () =>
      new Promise<ReadonlyArray<string>>((resolve, reject) => {
        const types: Array<string> = []
        const socket = new WebSocket(`${shared().url.replace("http", "ws")}/v1/responses`, { headers: bearer(token) })
        socket.on("error", reject)
        socket.on("open", () =>
          socket.send(JSON.stringify({ type: "response.create", model: "local-chat", input: "hello" })))
        socket.on("message", (data: Buffer) => {
          const { type } = JSON.parse(data.toString()) as { readonly type: string }
          types.push(type)
          if (type !== "response.completed") {
            return
          }
          socket.close()
          resolve(types)
        })
      })
    assert.include(await typesOf(), "response.completed")
    assert.include(await typesOf(), "response.completed")
  })

  it("opens no WebSocket if it is refused", async () => {
    const token = await issuer().token({ aud: "another" })
    const { headers, statusCode } = await new Promise<IncomingMessage>((resolve, reject) => {
      const socket = new WebSocket(`${shared().url.replace("http", "ws")}/v1/responses`, { headers: bearer(token) })
      socket.on("unexpected-response", (_, response) => resolve(response))
      socket.on("open", () => reject(new Error("it was opened")))
    })
    assert.strictEqual(statusCode, 401)
    assert.match(String(headers["x-request-id"]), /^req_/)
    assert.strictEqual(headers["request-id"], headers["x-request-id"])
  })

  it("has its work done that comes later, and reads only its own", async () => {
    const token = await issuer().token({ sub: "system:serviceaccount:blue:later" })
    const created = await shared().request(body, { headers: { ...bearer(token), prefer: "respond-async" } })
    assert.strictEqual(created.status, 202)
    const { id } = await created.json() as { readonly id: string }
    const read = async (token: string) => {
      const answer = await fetch(`${shared().ingresses[1]?.url}/v1/tasks/${id}`, { headers: bearer(token) })
      return { httpStatus: answer.status, ...await answer.json() as { readonly status?: string } }
    }
    const task = await eventually(
      () => read(token),
      ({ status }) => status === "completed" || status === "failed"
    )
    assert.strictEqual(task.status, "completed")
    const another = await issuer().token({ sub: "system:serviceaccount:blue:another" })
    assert.strictEqual((await read(another)).httpStatus, 404)
    assert.strictEqual((await read(await issuer().token({ sub: "system:serviceaccount:blue:later" }))).httpStatus, 200)
  })
})

/** A process that counts usage, and makes teams with ids that the catalogue has named before. */
const administrator = Effect.gen(function*() {
  const layer = Layer.mergeAll(UsageCounters.layer.pipe(Layer.provide(TeamsOfKeys.layer)), Spending.layer)
  const services = (yield* usageProcess(shared().nats, layer)) as Context.Context<
    UsageCounters | Spending | ControlNats
  >
  const bucket = yield* Effect.provide(openBucket(buckets.teams), services)
  return {
    counters: Context.get(services, UsageCounters),
    spending: Context.get(services, Spending),
    createTeam: (id: string, settings: Team.NewTeam) =>
      Effect.flatMap(Team.make(settings), (team) => bucket.put(id, Team.encode({ ...team, id })))
  }
})

interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly message: string | undefined
}

/** Asks an ingress with a key or a token. */
const ask = (secret: string, ingress: number, model = "local-chat") =>
  Effect.promise(async (): Promise<Answer> => {
    const one = shared().ingresses[ingress]
    const answer = await shared().request({ ...body, model }, {
      headers: bearer(secret),
      ...(one === undefined ? {} : { ingress: one })
    })
    const { error } = (await answer.json()) as { readonly error?: { readonly code: string; readonly message: string } }
    return { status: answer.status, code: error?.code, message: error?.message }
  })

/** Asks until an answer fits. */
const asking = (ask: Effect.Effect<Answer>, fits: (answer: Answer) => boolean) =>
  Effect.promise(() => eventually(() => Effect.runPromise(ask), fits))

describe("tokens of a team", () => {
  const tokenOf = (sub: string) => Effect.promise(() => issuer().token({ sub: `system:serviceaccount:${sub}` }))
  const keyOf = (team: string) => Effect.promise(() => shared().createKeyWith({ team }))
  const scoped = <A, E>(test: Effect.Effect<A, E, Scope.Scope>) => () => Effect.runPromise(Effect.scoped(test))

  it(
    "get 503 until it exists, and then share its limit with keys",
    scoped(Effect.gen(function*() {
      const { createTeam } = yield* administrator
      const token = yield* tokenOf("silver:chat")
      assert.deepInclude(yield* ask(token, 0), { status: 503 })
      assert.match(shared().log, /the team of their key or token.*does not exist.*team_silver/)
      yield* createTeam("team_silver", { name: "silver", requestsPerMinute: 2 })
      const { key } = yield* keyOf("team_silver")
      for (const secret of [token, key]) {
        assert.deepInclude(yield* asking(ask(secret, 0), ({ status }) => status !== 503), { status: 200 })
      }
      for (const [secret, ingress] of [[token, 0], [key, 1]] as const) {
        const refused = yield* ask(secret, ingress)
        assert.strictEqual(refused.status, 429)
        assert.include(refused.message ?? "", "The team 'silver'")
      }
    }))
  )

  it(
    "share its budget with keys, and its usage has both",
    scoped(Effect.gen(function*() {
      const { counters, createTeam, spending } = yield* administrator
      const from = DateTime.formatIsoDateUtc(yield* DateTime.now)
      yield* createTeam("team_above", { name: "above", monthlyBudgetUsd: 1.2 })
      // the team of the identity
      yield* createTeam("team_others", { name: "others", parent: "team_above" })
      const key = yield* keyOf("team_others")
      const token = yield* tokenOf("gold:chat")
      const paid = { [key.key]: 0, [token]: 0 }
      const buy = (secret: string, ingress: number) =>
        Effect.tap(ask(secret, ingress, "dear-chat"), ({ status }) =>
          Effect.sync(() => {
            if (status === 200) paid[secret]!++
          }))
      for (const [at, secret] of [key.key, token, token].entries()) {
        const answer = yield* asking(buy(secret, at % 2), ({ status }) => status !== 503 && status !== 429)
        assert.strictEqual(answer.status, 200, JSON.stringify(answer))
      }
      for (const secret of [key.key, token]) {
        const refused = yield* asking(buy(secret, 1), ({ code }) => code === "insufficient_quota")
        assert.include(refused.message ?? "", "The team 'above' has spent its budget")
      }
      const [byKey = 0, byToken = 0] = [paid[key.key], paid[token]]
      // one more if the last cost is not counted yet when the other ingress admits it
      assert.oneOf(byKey + byToken, [3, 4])
      const priceOf = (count: number) => (0.4 * count).toFixed(6)
      // a record for each team, and others for their usage, counted one after another
      yield* Effect.promise(() =>
        eventually(
          async () => ["team_above", "team_others"].map((team) => spending.of(team).toFixed(6)),
          (spent) => spent.every((usd) => usd === priceOf(byKey + byToken))
        )
      )
      const to = DateTime.formatIsoDateUtc(yield* DateTime.now)
      const query = { from, to, by: ["key"], team: "team_others", model: "dear-chat" } as const
      const rows = yield* rowsAt(counters, byKey + byToken, query)
      assert.deepStrictEqual(
        rows.map(({ costUsd, key = "" }) => [key.slice(0, 4), costUsd.toFixed(6)]),
        [["jwt_", priceOf(byToken)], ["key_", priceOf(byKey)]]
      )
      assert.strictEqual(rows[1]?.key, key.id)
    }))
  )

  it(
    "count for another team when the catalogue moves their owner",
    scoped(Effect.gen(function*() {
      const { createTeam, spending } = yield* administrator
      yield* createTeam("team_former", { name: "former" })
      yield* createTeam("team_later", { name: "later" })
      const token = yield* tokenOf("moving:chat")
      const isAnswered = ({ status }: Answer) => status === 200
      yield* asking(ask(token, 0, "dear-chat"), isAnswered)
      const spends = (team: string) => Effect.promise(() => eventually(async () => spending.of(team), (usd) => usd > 0))
      yield* spends("team_former")
      yield* Effect.promise(async () => {
        const file = shared().catalogueFile
        await writeFile(file, (await readFile(file, "utf8")).replace("team_former", "team_later"))
      })
      const spent = () => spending.of("team_former") + spending.of("team_later")
      // one request after another, each once the one before is counted
      yield* asking(
        Effect.suspend(() => {
          const before = spent()
          const counted = Effect.promise(() => eventually(spent, (usd) => usd > before))
          return Effect.tap(ask(token, 0, "dear-chat"), (answer) => isAnswered(answer) ? counted : Effect.void)
        }),
        () => spending.of("team_later") > 0
      )
    }))
  )
})

describe("the console", () => {
  it("lists the owners of tokens, by whose names it shows their usage", async () => {
    const sub = "system:serviceaccount:blue:listed"
    const answer = await shared().request(body, { headers: bearer(await issuer().token({ sub })) })
    assert.strictEqual(answer.status, 200)
    const { port } = await shared().startConsole()
    const client = await ConsoleClient.signedIn(port, "Ada")
    const { body: owners, status } = await client.send<ReadonlyArray<Record<string, unknown>>>("GET", "/api/principals")
    assert.strictEqual(status, 200)
    const owner = owners.find(({ subject }) => subject === sub)
    assert.deepInclude(owner, { issuer: issuer().url, team: null })
    assert.match(String(owner?.["id"]), /^jwt_/)
  })
})
