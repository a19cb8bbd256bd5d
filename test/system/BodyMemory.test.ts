/**
 * Large bodies, many at once: ingress and worker stay below the limits of their pods, small requests are answered meanwhile,
 * and clients that find no room are told when to come again.
 */
import { assert, describe, it } from "@effect/vitest"
import { request } from "node:http"
import { chat } from "../fixture/ChatClient.ts"
import { Gateway } from "../fixture/Gateway.ts"
import { canLimitMemory } from "../fixture/Pod.ts"
import { peakMb } from "../fixture/ProcessStatus.ts"

const mebibyte = 1024 * 1024

/** The limits of the pods in `deploy/kubernetes/base`. */
const limits = new Map([["ingress", 1024], ["chat", 1024]])

const parallel = 60
const bodySize = 20_000_000

/** In a field that only passes through: the fake provider takes its time over long messages. */
const bodyOf = (first: string): Buffer =>
  Buffer.from(JSON.stringify({ ...chat("free-chat"), padding: first + "x".repeat(bodySize) }))

interface Outcome {
  readonly status: number
  readonly code: string | undefined
  readonly retryAfter: string | undefined
}

/** Sends the whole body and reads the answer; a client that is told early stops sending. */
const upload = (gateway: Gateway, key: string, body: Buffer, isChunked: boolean): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const sent = request(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        ...(isChunked ? { "transfer-encoding": "chunked" } : { "content-length": body.length })
      }
    })
    let isAnswered = false
    sent.on("response", (response) => {
      isAnswered = true
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject).on("end", () => {
        const text = Buffer.concat(chunks).toString()
        const { error } = JSON.parse(text) as { readonly error?: { readonly code: string } }
        resolve({ status: response.statusCode ?? 0, code: error?.code, retryAfter: response.headers["retry-after"] })
        sent.destroy()
      })
    })
    sent.on("error", (error) => isAnswered || reject(error))
    sent.end(body)
  })

const canLimit = await canLimitMemory()
if (!canLimit) console.warn("No namespaces for users here: the test of memory under many large bodies is left out")

describe.skipIf(!canLimit)("sixty bodies of 20 MB at once", { timeout: 240_000 }, () => {
  const cases = [["ASCII", "x"], ["not Latin", "\u0100"]].flatMap(([script = "", first = ""]) =>
    [1, 6].flatMap((keys) => [false, true].map((isChunked) => ({ script, first, keys, isChunked })))
  )
  it.live.each(cases)("$script, of $keys keys, chunked: $isChunked", ({ first, isChunked, keys }) =>
    Gateway.run({
      environment: { GATEWAY_REQUEST_LOG: "0" },
      memoryLimitOf: (service) => {
        const limit = limits.get(service)
        return limit === undefined ? undefined : limit * mebibyte
      }
    }, async (gateway) => {
      gateway.provider.say("done")
      const others = await Promise.all(Array.from({ length: keys - 1 }, () => gateway.createKey("2100-01-01")))
      const senders = [gateway.key, ...others]
      const body = bodyOf(first)
      let areDone = false
      const uploads = Promise.all(Array.from({ length: parallel }, (_, index) =>
        upload(gateway, senders[index % senders.length] ?? "", body, isChunked))).finally(() => {
          areDone = true
        })
      const quiet = await gateway.createKey("2100-01-01")
      let small = 0
      while (!areDone) {
        const answer = await gateway.request(chat("free-chat"), { headers: { authorization: `Bearer ${quiet}` } })
        assert.strictEqual(answer.status, 200, await answer.text())
        small++
      }
      const outcomes = await uploads
      const peaks = await Promise.all([gateway.ingress, ...gateway.workers].map(async ({ name, pid }) =>
        [name, await peakMb(pid)] as const
      ))
      const count = new Map<string, number>()
      for (const { status, code } of outcomes) {
        count.set(`${status} ${code}`, (count.get(`${status} ${code}`) ?? 0) + 1)
      }
      console.log(JSON.stringify({ keys, isChunked, first, peaks, small, count: Object.fromEntries(count) }))
      for (const [name, peak] of peaks) {
        assert.isBelow(peak, limits.get(name) ?? 0, name)
      }
      assert.isAbove(small, 5)
      for (const { retryAfter, status } of outcomes) {
        if (status === 200) {
          continue
        }
        assert.include([429, 503], status)
        assert.match(retryAfter ?? "", /^[1-9]\d*$/)
      }
      assert.isTrue(outcomes.some(({ status }) =>
        status === 200
      ))
    }))
})
