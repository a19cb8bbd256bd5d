/** Webhooks about responses in the background: a receiver that verifies them with OpenAI's client, and the console's admin API. */
import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll } from "vitest"
import type { DeliveryView } from "../../../services/console/api/Webhooks.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"

interface Received {
  readonly path: string
  readonly headers: Headers
  readonly body: string
}

/** What the receiver has got, and the statuses of its next answers; then 204. */
const received: Array<Received> = []
const nextStatuses: Array<number> = []
const receiver = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString()
  const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
  received.push({ path: request.url ?? "", headers, body })
  const status = nextStatuses.shift() ?? 204
  response.writeHead(status, status === 307 ? { location: "/elsewhere" } : {}).end()
}).listen(0, "127.0.0.1")
await once(receiver, "listening")
const origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
afterAll(() => void receiver.close())

const shared = sharedGateway({
  ...chatProviders(),
  services: ["batches"],
  environment: { GATEWAY_WEBHOOK_ORIGINS: origin }
})
let admin: ConsoleClient
beforeAll(async () => {
  admin = await ConsoleClient.signedIn((await shared().startConsole()).port)
})

interface Webhook {
  readonly url: string
  readonly secret: string | null
  readonly formerSecretUntil: string | null
}

/** A key with a webhook. */
const configured = async (url: string) => {
  const { id, key } = await shared().createKeyWith({})
  const path = `/api/keys/${id}/webhook`
  const { body, status } = await admin.send<Webhook>("PUT", path, { url })
  assert.strictEqual(status, 200)
  assert.match(body.secret ?? "", /^whsec_[0-9A-Za-z+/]{43}=$/)
  const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })
  const deliveryOf = (subject: string, isWanted: (delivery: DeliveryView) => boolean) =>
    eventually(
      async () =>
        (await admin.send<ReadonlyArray<DeliveryView>>("GET", `${path}/deliveries`)).body
          .find((delivery) => delivery.subject === subject),
      (delivery) => delivery !== undefined && isWanted(delivery)
    ).then((delivery) => delivery ?? assert.fail("no delivery"))
  return { client, path, secret: body.secret ?? "", deliveryOf }
}

const attemptsAbout = (subject: string): ReadonlyArray<Received> =>
  received.filter(({ body }) => body.includes(subject))
const untilAttempts = (subject: string, count: number) =>
  eventually(async () => attemptsAbout(subject), ({ length }) => length >= count)

const unwrap = ({ body, headers }: Received, secret: string) =>
  new OpenAI({ apiKey: "none" }).webhooks.unwrap(body, headers, secret)

const background = (client: OpenAI) =>
  client.responses.create({ model: "on-openai", input: "Think.", background: true })

describe("a webhook", () => {
  it("is sent at the end of a batch", async () => {
    const { client, secret } = await configured(`${origin}/batches`)
    const endpoint = "/v1/chat/completions"
    const body = { model: "on-openai", messages: [{ role: "user", content: "Think." }] }
    const line = JSON.stringify({ custom_id: "a", method: "POST", url: endpoint, body })
    const file = await client.files.create({ file: await toFile(Buffer.from(line), "a.jsonl"), purpose: "batch" })
    const { id } = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" })
    const [attempt] = await untilAttempts(id, 1)
    if (attempt === undefined) assert.fail("no attempt")
    assert.deepInclude(await unwrap(attempt, secret) as object, { type: "batch.completed", data: { id } })
  })

  it("is sent at each end of a response, with its id alone", async () => {
    const { client, secret } = await configured(`${origin}/ends`)
    const ends = {
      completed: async () => {
        shared().provider.say({ text: "Done." })
        return (await background(client)).id
      },
      incomplete: async () => {
        shared().provider.say({ text: "Not do", finishReason: "length" })
        return (await background(client)).id
      },
      failed: async () => {
        shared().provider.behaveOnce({ kind: "status", status: 400, error: { message: "no thanks" } })
        return (await background(client)).id
      },
      cancelled: async () => {
        shared().provider.behaveOnce({ kind: "silent" })
        const { result } = await receivedBy(shared(), () => background(client))
        const { id } = await result
        await client.responses.cancel(id)
        return id
      }
    }
    for (const [end, bring] of Object.entries(ends)) {
      const subject = await bring()
      const [attempt] = await untilAttempts(subject, 1)
      if (attempt === undefined) assert.fail("no attempt")
      const event = await unwrap(attempt, secret)
      assert.deepInclude(event as object, { object: "event", type: `response.${end}`, data: { id: subject } })
      assert.strictEqual(event.id, attempt.headers.get("webhook-id"))
      assert.strictEqual(attempt.path, "/ends")
      const forged = { ...attempt, body: attempt.body.replace(end, "queued") }
      assert.include(String(await unwrap(forged, secret).catch(String)), "signature does not match")
    }
    shared().provider.say({ text: "Done." })
  })

  it("is not sent about answers on the client's connection", async () => {
    const { client, path } = await configured(`${origin}/none`)
    await client.responses.create({ model: "on-openai", input: "Hi" })
    const { id } = await background(client)
    await untilAttempts(id, 1)
    const { body } = await admin.send<ReadonlyArray<DeliveryView>>("GET", `${path}/deliveries`)
    assert.deepStrictEqual(body.map(({ subject }) => subject), [id])
  })

  it("is sent again under the same id until it is accepted, and follows no redirect", async () => {
    const { client, deliveryOf, secret } = await configured(`${origin}/flaky`)
    nextStatuses.push(307)
    const { id } = await background(client)
    assert.deepInclude(await deliveryOf(id, ({ attempts }) => attempts === 1), { status: "pending", outcome: "307" })
    const [first, second] = await untilAttempts(id, 2)
    if (first === undefined || second === undefined) assert.fail("no second attempt")
    assert.strictEqual(second.path, "/flaky")
    assert.strictEqual(second.headers.get("webhook-id"), first.headers.get("webhook-id"))
    assert.isAbove(
      Number(second.headers.get("webhook-timestamp")),
      Number(first.headers.get("webhook-timestamp"))
    )
    await unwrap(second, secret)
    const delivered = await deliveryOf(id, ({ status }) => status === "delivered")
    assert.deepInclude(delivered, { attempts: 2, outcome: "204", nextAttemptAt: null })
  })

  it("is signed with both secrets while one is rotated", async () => {
    const { client, path, secret: former } = await configured(`${origin}/rotated`)
    const { body } = await admin.send<Webhook>("POST", `${path}/rotate`)
    assert.notStrictEqual(body.secret, former)
    const { id } = await background(client)
    const [attempt] = await untilAttempts(id, 1)
    if (attempt === undefined) assert.fail("no attempt")
    for (const secret of [former, body.secret ?? ""]) {
      assert.deepInclude(await unwrap(attempt, secret) as object, { type: "response.completed" })
    }
    const shown = await admin.send<Webhook>("GET", path)
    assert.notProperty(shown.body, "secret")
    assert.isNotNull(shown.body.formerSecretUntil)
  })

  it("is not sent to private addresses, and can be sent again to another URL", async () => {
    const { client, deliveryOf, path } = await configured("http://127.0.0.1:9/private")
    const { id } = await background(client)
    const failed = await deliveryOf(id, ({ status }) => status !== "pending")
    assert.deepInclude(failed, { status: "failed", attempts: 1, outcome: "does not lead to a public address" })
    const changed = await admin.send<Webhook>("PUT", path, { url: `${origin}/again` })
    assert.isNull(changed.body.secret)
    const resent = await admin.send("POST", `${path}/deliveries/${failed.id}/resend`)
    assert.strictEqual(resent.status, 200)
    const [attempt] = await untilAttempts(id, 1)
    assert.strictEqual(attempt?.headers.get("webhook-id"), failed.id)
    await deliveryOf(id, ({ status }) => status === "delivered")
  })

  it("can be removed, and its URL must be one", async () => {
    const { path } = await configured(`${origin}/removed`)
    assert.strictEqual((await admin.send("PUT", path, { url: "ftp://example.com" })).status, 400)
    assert.strictEqual((await admin.send("POST", `${path}/deliveries/evt_unknown/resend`)).status, 404)
    assert.strictEqual((await admin.send("DELETE", path)).status, 204)
    assert.strictEqual((await admin.send("GET", path)).status, 404)
    assert.strictEqual((await admin.send("POST", `${path}/rotate`)).status, 404)
    assert.strictEqual((await admin.send("GET", "/api/keys/key_unknown/webhook")).status, 404)
    const { body } = await admin.send<ReadonlyArray<{ readonly settings?: object }>>("GET", "/api/key-changes")
    assert.deepInclude(body.map(({ settings }) => settings), { webhook: null })
  })
})
