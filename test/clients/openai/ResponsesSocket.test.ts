/** Responses over WebSocket, by OpenAI's client and by raw messages. */
import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import OpenAI from "openai"
import { ResponsesWS } from "openai/resources/responses/ws"
import { WebSocket } from "ws"
import { openSocket } from "../../fixture/sockets/SocketClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Received } from "../../fixture/provider/FakeProvider.ts"

const text = "The quick brown fox jumps over the lazy dog"
const shared = sharedGateway()

const messagesIn = ({ json }: Received): ReadonlyArray<unknown> =>
  (json as { readonly messages: ReadonlyArray<{ readonly content: unknown }> }).messages.map(({ content }) => content)

const authorized = () => ({ authorization: `Bearer ${shared().key}` })
const open = () => openSocket(shared().url, authorized())

const refused = async (headers: Record<string, string>) => {
  const socket = new WebSocket(`${shared().url.replace("http", "ws")}/v1/responses`, { headers })
  const [, response] = await once(socket, "unexpected-response")
  return response.statusCode as number
}

describe("OpenAI's client", () => {
  it("gets the events of a response", async () => {
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key })
    const socket = new ResponsesWS(client)
    socket.send({ type: "response.create", model: "local-chat", input: `Say: ${text}`, store: false })
    const types: Array<string> = []
    let output = ""
    for await (const event of socket.stream()) {
      if (event.type !== "message") continue
      types.push(event.message.type)
      if (event.message.type === "response.output_text.delta") output += event.message.delta
      if (event.message.type === "response.completed") break
    }
    socket.close()
    assert.strictEqual(output, text)
    assert.deepStrictEqual([types[0], types.at(-1)], ["response.created", "response.completed"])
  })
})

describe("a WebSocket", () => {
  it("continues from a response that is not stored", async () => {
    const { create, received: events, socket, until } = await open()
    create({ input: "Say: one", store: false })
    const [first] = await until()
    const { received } = await receivedBy(shared(), () => {
      create({ model: "free-chat", input: "two", store: false, previous_response_id: first?.response?.id })
    })
    const [, second] = await until(2)
    socket.close()
    assert.strictEqual(second?.type, "response.completed")
    assert.deepStrictEqual(messagesIn(received), ["Say: one", "one", "two"])
    const shown = events.flatMap(({ response }) => response === undefined ? [] : [response.previous_response_id])
    const id = first?.response?.id
    assert.deepStrictEqual(shown, [null, null, null, id, id, id])
  })

  it("keeps input without a call of the model", async () => {
    const { create, received, socket, until } = await open()
    create({ input: "one", store: false, generate: false })
    const [first] = await until()
    assert.deepStrictEqual(received.map(({ type }) => type), ["response.created", "response.completed"])
    assert.deepStrictEqual(first?.response?.output, [])
    const { received: asked } = await receivedBy(shared(), () => {
      create({ model: "free-chat", input: "two", store: false, previous_response_id: first?.response?.id })
    })
    assert.strictEqual((await until(2)).at(-1)?.type, "response.completed")
    socket.close()
    assert.deepStrictEqual(messagesIn(asked), ["one", "two"])
  })

  it("answers lanes side by side, and each in order", async () => {
    const { create, received, socket, until } = await open()
    for (const lane of ["a", "b"]) {
      for (const word of ["one", "two"]) create({ input: `Say: ${lane} ${word}`, store: false, stream_id: lane })
    }
    await until(4)
    socket.close()
    for (const lane of ["a", "b"]) {
      const texts = received.filter(({ stream_id, type }) => stream_id === lane && type === "response.output_text.done")
      assert.deepStrictEqual(texts.map(({ text }) => text), [`${lane} one`, `${lane} two`])
    }
  })

  it("stays open after errors, which name the field and the lane", async () => {
    const { create, socket, until } = await open()
    create({ input: 5, store: false, stream_id: "a" })
    create({ input: "Say: one", model: "no-such-model" })
    create({ input: "Say: one", background: true })
    socket.send("no JSON")
    socket.send(JSON.stringify({ type: "response.processed" }))
    const errors = await until(4)
    assert.sameDeepMembers(
      errors.map(({ error, status, stream_id }) => [status, error?.param ?? error?.code, stream_id]),
      [
        [400, "input", "a"],
        [404, "model", undefined],
        [400, "background", undefined],
        [400, "invalid_json", undefined]
      ]
    )
    create({ input: "Say: one", store: false })
    assert.strictEqual((await until(5)).at(-1)?.type, "response.completed")
    socket.close()
  })

  it("is refused without a valid key, and requests without an upgrade are told to use POST", async () => {
    assert.strictEqual(await refused({ authorization: "Bearer sk-gw-unknown" }), 401)
    const plain = await fetch(`${shared().url}/v1/responses`, { headers: authorized() })
    assert.strictEqual(plain.status, 426)
  })

  it("is refused with 426 if its key has half of a thousand, or its share of the quarter that is kept for others", async () => {
    const keys = [shared().key, await shared().createKey("2100-01-01"), await shared().createKey("2100-01-01")]
    const sockets: Array<WebSocket> = []
    const connect = (key: string | undefined): Promise<number> => {
      const headers = { authorization: `Bearer ${key}` }
      const socket = new WebSocket(`${shared().url.replace("http", "ws")}/v1/responses`, { headers })
      sockets.push(socket)
      return Promise.race([
        once(socket, "open").then(() => 101),
        once(socket, "unexpected-response").then(([, response]) => response.statusCode as number)
      ])
    }
    const openedBy: Array<number> = []
    for (const key of keys) {
      const statuses: Array<number> = []
      while (statuses.length < 501) {
        statuses.push(...await Promise.all(Array.from({ length: 77 }, () => connect(key))))
      }
      assert.includeMembers([101, 426], statuses)
      openedBy.push(statuses.filter((status) => status === 101).length)
    }
    for (const socket of sockets) socket.terminate()
    // sockets of other tests may still be open
    const [first = 0, second = 0, third = 0] = openedBy
    assert.closeTo(first, 500, 10)
    assert.closeTo(second, 250, 10)
    assert.closeTo(third, 50, 10)
    await eventually(() => connect(keys[2]), (status) => status === 101)
    sockets.at(-1)?.terminate()
  })

  it("cancels the calls of a client that leaves", async () => {
    const { create, received: events, socket } = await open()
    shared().provider.behaveOnce({ kind: "endless" })
    const { received } = await receivedBy(shared(), () => create({ model: "free-chat", input: "one", store: false }))
    await eventually(async () => events.length, (count) => count > 0)
    socket.terminate()
    assert.strictEqual(await received.closed, "aborted")
  })
})
