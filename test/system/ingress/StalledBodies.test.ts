/** Requests whose bodies are announced and not sent, or not to the end: the requests of other keys are answered beside them. */
import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { chat, type Outcome, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { sendRaw } from "../../fixture/client/RawHttp.ts"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"

const mebibyte = 1024 * 1024

/** The default of a small ingress. */
const environment = { GATEWAY_QUEUE_BYTES: String(64 * mebibyte) }

const largest = 32 * mebibyte

const head = (key: string, path: string, more: string) =>
  `POST ${path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\n${more}\r\n\r\n`

const json = "content-type: application/json\r\n"
const form = "content-type: multipart/form-data; boundary=x\r\n"
const formStart = "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n{\"custom_id\":"

/** An attack: the head of each request, and what it sends of its body. */
interface Stall {
  readonly name: string
  readonly path?: string
  readonly head: string
  readonly sent: string
}

const stalls: ReadonlyArray<Stall> = [
  { name: "wait for permission", head: `${json}content-length: ${largest}\r\nexpect: 100-continue`, sent: "" },
  { name: "send no byte", head: `${json}content-length: ${largest}`, sent: "" },
  { name: "send one byte", head: `${json}content-length: ${largest}`, sent: "{" },
  {
    name: "do not announce their length",
    head: `${json}transfer-encoding: chunked\r\nexpect: 100-continue`,
    sent: "1\r\n{\r\n"
  },
  { name: "send much", head: `${json}content-length: ${largest}`, sent: "{".repeat(256 * 1024) },
  { name: "upload files", path: "/v1/files", head: `${form}content-length: 2000000`, sent: formStart }
]

/** Opens requests of these keys that stall. Their bytes arrive before those of later requests. */
const stall = async (gateway: AnyGateway, keys: ReadonlyArray<string>, perKey: number, attack: Stall) => {
  const sockets: Array<Socket> = []
  const { head: more, path = "/v1/chat/completions", sent } = attack
  for (const key of keys.flatMap((key) => Array.from({ length: perKey }, () => key))) {
    const socket = connect(gateway.ingress.port, "127.0.0.1").on("error", () => {})
    sockets.push(socket)
    await once(socket, "connect")
    socket.resume().write(head(key, path, more))
    if (sent !== "") socket.write(sent)
  }
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

describe("beside 512 stalled bodies of 8 keys", () => {
  for (const attack of stalls) {
    it.live(`that ${attack.name}, another key's chats are answered`, () =>
      Gateway.runHere({ environment }, async (gateway) => {
        gateway.provider.say("done")
        const keys = await Promise.all(Array.from({ length: 8 }, () => gateway.createKey("2100-01-01")))
        const leave = await stall(gateway, keys, 64, attack)
        const outcomes: Array<Outcome> = []
        for (let round = 0; round < 5; round++) {
          const small = gateway.request(chat("free-chat"))
          const large = gateway.request(chat("free-chat", { user: "x".repeat(200_000) }))
          outcomes.push(...await Promise.all([small, large].map(outcomeOf)))
        }
        // bodies that were sent hold memory, so that larger ones have to wait
        if (attack.sent.length < 1_000) {
          outcomes.push(await outcomeOf(gateway.request(chat("free-chat", { user: "x".repeat(2 * mebibyte) }))))
        }
        assert.deepStrictEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(["whole"]))
        leave()
      }))
  }
})

describe("a key with limits", () => {
  const body = JSON.stringify(chat("free-chat"))
  const asking = (key: string) =>
    head(key, "/v1/chat/completions", `${json}content-length: ${largest}\r\nexpect: 100-continue`)

  it.live("is refused at the head of a request, before its body is asked for", () =>
    Gateway.runHere({}, async (gateway) => {
      gateway.provider.say("done")
      const limited = await gateway.createKeyWith({ concurrentRequests: 1 })
      const leave = await stall(gateway, [limited.key], 1, stalls[1]!)
      const ask = async () => {
        const [answer] = await sendRaw(gateway.ingress.port, [asking(limited.key)])
        return answer?.status
      }
      await eventually(ask, (status) => status === 429)
      leave()
      // a body that is no longer sent gives its unit back
      const headers = { authorization: `Bearer ${limited.key}` }
      await eventually(() => outcomeOf(gateway.request(body, { headers })), ({ kind }) => kind === "whole")
    }))

  // each is refused after its body has come
  const refused: ReadonlyArray<readonly [name: string, body: string, status: number]> = [
    ["no JSON", "{", 400],
    ["no body", "", 400],
    ["a wrong field", JSON.stringify(chat("free-chat", { messages: 1 })), 400],
    ["an unknown model", JSON.stringify(chat("no-such-model")), 404],
    ["more tokens than its limit", JSON.stringify(chat("free-chat", { max_tokens: 2_000 })), 400],
    ["a model that it may not use", JSON.stringify(chat("paid-chat")), 403]
  ]
  it.live("gets the unit back for each body that is refused later", () =>
    Gateway.runHere({}, async (gateway) => {
      gateway.provider.say("done")
      const { key } = await gateway.createKeyWith({
        requestsPerMinute: 1,
        concurrentRequests: 1,
        tokensPerMinute: 1_000,
        allowedModels: ["free-chat", "no-such-model"]
      })
      const headers = { authorization: `Bearer ${key}` }
      for (const [name, body, status] of refused) {
        const answer = await gateway.request(body, { headers })
        await answer.arrayBuffer()
        assert.strictEqual(answer.status, status, name)
        assert.strictEqual(answer.headers.get("x-ratelimit-remaining-requests"), "1", name)
      }
      assert.deepStrictEqual(await outcomeOf(gateway.request(body, { headers })), { kind: "whole" })
      const last = await outcomeOf(gateway.request(body, { headers }))
      assert.deepInclude(last, { kind: "refused", status: 429, code: "rate_limit_exceeded" })
    }))
})
