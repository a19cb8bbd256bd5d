/** What the playground's proxy does with the bodies of requests, before an ingress that answers as a test says. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { Agent, type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { afterAll } from "vitest"
import { cookieName, pageHeader } from "../../../services/console/api/Admin.ts"
import { answerUnread } from "../../../shared/process/http/HttpServer.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const gateway = sharedGateway({ workers: 0 })
const mebibyte = Buffer.alloc(1024 * 1024, "a")

let handle: (request: IncomingMessage, response: ServerResponse) => void
const ingress = createServer((request, response) => handle(request, response))
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
let console: ConsoleClient

beforeAll(async () => {
  ingress.listen(0, "127.0.0.1")
  await once(ingress, "listening")
  const { port } = await gateway().startConsole({
    CONSOLE_GATEWAY_URL: `http://127.0.0.1:${(ingress.address() as AddressInfo).port}`
  })
  console = await ConsoleClient.signedIn(port)
})
afterAll(() => {
  agent.destroy()
  ingress.closeAllConnections()
  ingress.close()
})

/** A request whose body is still to be written. */
const begin = (headers: Readonly<Record<string, string>> = {}): ClientRequest =>
  request(`${console.url}/gateway/v1/files`, {
    method: "POST",
    agent,
    headers: { [pageHeader]: "1", cookie: `${cookieName}=${console.cookie}`, ...headers }
  })

const answerOf = async (upload: ClientRequest) => {
  const [response] = await once(upload, "response") as [IncomingMessage]
  return { status: response.statusCode, body: await text(response) }
}

describe("the playground's proxy", () => {
  for (
    const [length, given] of [["a known", { "content-length": String(mebibyte.length) }], ["an unknown", {}]] as const
  ) {
    it(`sends a body of ${length} length on while it arrives`, async () => {
      const received = Promise.withResolvers<IncomingMessage>()
      handle = (request, response) => {
        request.once("readable", () => received.resolve(request))
        request.once("end", () => response.end(`${request.headers["content-length"]}`))
      }
      const upload = begin(given)
      upload.write(mebibyte.subarray(0, 1_000))
      const arriving = await received.promise
      upload.end(mebibyte.subarray(1_000))
      const answer = answerOf(upload)
      assert.strictEqual((await text(arriving)).length, mebibyte.length)
      assert.deepStrictEqual(await answer, { status: 200, body: String(Object.values(given)[0]) })
    })
  }

  it("passes on the answer of an ingress that does not wait for the body, after the last byte", async () => {
    const answered = Promise.withResolvers<void>()
    handle = (request, response) => {
      answerUnread(request, response, 401, { headers: {}, body: "no key" })
      answered.resolve()
    }
    const upload = begin({ "content-length": String(8 * mebibyte.length) })
    const answer = answerOf(upload)
    upload.write(mebibyte)
    await answered.promise
    for (let count = 1; count < 8; count++) upload.write(mebibyte)
    upload.end()
    assert.deepStrictEqual(await answer, { status: 401, body: "no key" })
    // a connection with an unread body cannot be kept
    handle = (request, response) => request.resume().once("end", () => response.end("next"))
    const next = begin()
    next.end()
    assert.deepStrictEqual(await answerOf(next), { status: 200, body: "next" })
    assert.strictEqual(next.socket, upload.socket)
  })

  it("says that the ingress does not answer, after the last byte", async () => {
    handle = (request) => request.socket.destroy()
    const upload = begin()
    for (let count = 0; count < 8; count++) upload.write(mebibyte)
    upload.end()
    const { body, status } = await answerOf(upload)
    assert.strictEqual(status, 502)
    assert.include(body, "CONSOLE_GATEWAY_URL")
  })

  it("refuses a body of unknown length above 32 MiB", async () => {
    const closed = Promise.withResolvers<void>()
    handle = (request) => {
      request.resume().once("close", closed.resolve)
    }
    const upload = begin()
    // the console closes the connection before the rest
    upload.on("error", () => {})
    for (let count = 0; count < 34; count++) upload.write(mebibyte)
    const { body, status } = await answerOf(upload)
    assert.strictEqual(status, 413)
    assert.include(body, "32 MiB")
    upload.destroy()
    await closed.promise
  })
})
