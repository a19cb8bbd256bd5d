/** Tokens in place of API keys through the whole gateway, like those of a Kubernetes cluster's service accounts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import OpenAI from "openai"
import { afterAll, beforeAll } from "vitest"
import { WebSocket } from "ws"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { audience, Issuer } from "../../fixture/identity/Issuer.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"

const scope = Scope.makeUnsafe()
let issuer: Issuer
beforeAll(async () => {
  issuer = await Effect.runPromise(Scope.provide(Issuer.make, scope))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const shared = sharedGateway({
  ingresses: 2,
  settings: () => `
identities:
  cluster:
    issuer: ${issuer.url}
    audience: ${audience}
    principals:
      - { match: "system:serviceaccount:slow:*", requestsPerMinute: 1 }
      - { match: "system:serviceaccount:blue:*", allowedModels: [local-chat] }`
})

const body = { model: "local-chat", messages: [{ role: "user", content: "hello" }] }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe("a service account's token", { timeout: 60_000 }, () => {
  it("calls chat with an official client, and its usage is its owner's", async () => {
    const token = await issuer.token()
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: token, maxRetries: 0 })
    const answer = await client.chat.completions.create({
      model: "local-chat",
      messages: [{ role: "user", content: "hello" }]
    })
    assert.strictEqual(answer.object, "chat.completion")
    const events = await eventually(() => eventsIn(shared().nats), ({ length }) => length > 0, 10_000)
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
    const token = await issuer.token()
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
    const token = await issuer.token({ aud: "another" })
    const answer = await shared().request(body, { headers: bearer(token) })
    assert.strictEqual(answer.status, 401)
    const { error } = await answer.json() as { readonly error: { readonly code: string; readonly message: string } }
    assert.strictEqual(error.code, "invalid_api_key")
    assert.include(error.message, "audience (aud)")
    assert.notInclude(error.message, token.slice(0, 20))
    assert.notInclude(shared().log, token.slice(-40))
  })

  it("has limits that hold across ingresses", async () => {
    const tokens = await Promise.all([0, 1, 2].map(() => issuer.token({ sub: "system:serviceaccount:slow:chat" })))
    const answers = await Promise.all(
      tokens.map((token, at) => {
        const ingress = shared().ingresses[at % 2]
        return shared().request(body, { headers: bearer(token), ...(ingress === undefined ? {} : { ingress }) })
      })
    )
    assert.deepStrictEqual(answers.map(({ status }) => status).toSorted(), [200, 429, 429])
  })

  it("opens a WebSocket, the first time it is seen and later", async () => {
    const token = await issuer.token({ sub: "system:serviceaccount:blue:socket" })
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
    const token = await issuer.token({ aud: "another" })
    const status = await new Promise((resolve, reject) => {
      const socket = new WebSocket(`${shared().url.replace("http", "ws")}/v1/responses`, { headers: bearer(token) })
      socket.on("unexpected-response", (_, { statusCode }) => resolve(statusCode))
      socket.on("open", () => reject(new Error("it was opened")))
    })
    assert.strictEqual(status, 401)
  })

  it("has its work done that comes later, and reads only its own", async () => {
    const token = await issuer.token({ sub: "system:serviceaccount:blue:later" })
    const created = await shared().request(body, { headers: { ...bearer(token), prefer: "respond-async" } })
    assert.strictEqual(created.status, 202)
    const { id } = await created.json() as { readonly id: string }
    const read = async (token: string) => {
      const answer = await fetch(`${shared().ingresses[1]?.url}/v1/tasks/${id}`, { headers: bearer(token) })
      return { httpStatus: answer.status, ...await answer.json() as { readonly status?: string } }
    }
    const task = await eventually(
      () => read(token),
      ({ status }) => status === "completed" || status === "failed",
      20_000
    )
    assert.strictEqual(task.status, "completed")
    const another = await issuer.token({ sub: "system:serviceaccount:blue:another" })
    assert.strictEqual((await read(another)).httpStatus, 404)
    assert.strictEqual((await read(await issuer.token({ sub: "system:serviceaccount:blue:later" }))).httpStatus, 200)
  })
})
