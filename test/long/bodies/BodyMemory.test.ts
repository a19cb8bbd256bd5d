/**
 * Many large bodies at once: ingress and worker stay below their pods' memory limits, small requests are still answered, and
 * clients without room get a time to retry.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFile } from "node:fs/promises"
import { request } from "node:http"
import { join } from "node:path"
import { chat } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { canLimitMemory } from "../../fixture/Pod.ts"
import { peakMb } from "../../fixture/gateway/ProcessStatus.ts"

const mebibyte = 1024 * 1024
const base = join(import.meta.dirname, "../../../deploy/kubernetes/base")

/** The memory limit of a deployed pod, in MiB. */
const limitIn = async (...path: ReadonlyArray<string>): Promise<number> => {
  const [, size, unit] = /limits: \{.*memory: (\d+)(Mi|Gi)/.exec(await readFile(join(base, ...path), "utf8")) ?? []
  return Number(size) * (unit === "Gi" ? 1024 : 1)
}

const limits: Readonly<Record<string, number>> = {
  ingress: await limitIn("ingress", "deployment.yaml"),
  chat: await limitIn("chat", "measure.yaml")
}

/** The share of its limit that a process may use; the rest is slack for garbage collection. */
const mostOfLimit = 0.8

const parallel = 60

/** A body with a large field that is only passed on, because the fake provider is slow with long messages. */
const bodyOf = (first: string): Buffer =>
  Buffer.from(JSON.stringify({ ...chat("free-chat"), padding: first + "x".repeat(20_000_000) }))

interface Outcome {
  readonly status: number
  readonly retryAfter: string | undefined
}

/** Sends a body and reads the answer; a client that gets an early answer stops sending. */
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
      response.resume().on("error", reject).on("end", () => {
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] })
        sent.destroy()
      })
    })
    sent.on("error", (error) => isAnswered || reject(error))
    sent.end(body)
  })

const canLimit = await canLimitMemory()
if (!canLimit) console.warn("skipped the test of memory under large bodies: no user namespaces here")

describe.skipIf(!canLimit)("sixty bodies of 20 MB at once", { timeout: 120_000 }, () => {
  it.live.each([
    { script: "ASCII", first: "x", keys: 1 },
    { script: "non-Latin text", first: "\u0100", keys: 6 }
  ])("of $script with $keys keys", ({ first, keys }) =>
    Gateway.run({
      environment: { GATEWAY_REQUEST_LOG: "0" },
      memoryLimitOf: (service) => limits[service] === undefined ? undefined : limits[service] * mebibyte
    }, async (gateway) => {
      gateway.provider.say("done")
      const quiet = await gateway.createKey("2100-01-01")
      const others = await Promise.all(Array.from({ length: keys - 1 }, () => gateway.createKey("2100-01-01")))
      const senders = [gateway.key, ...others]
      const body = bodyOf(first)
      const progress = { isOver: false }
      const uploads = Array.from({ length: parallel }, (_, index) =>
        upload(gateway, senders[index % keys] ?? "", body, index % (2 * keys) < keys))
      const all = Promise.all(uploads).finally(() => {
        progress.isOver = true
      })
      let small = 0
      while (!progress.isOver) {
        const answer = await gateway.request(chat("free-chat"), { headers: { authorization: `Bearer ${quiet}` } })
        assert.strictEqual(answer.status, 200, await answer.text())
        small++
      }
      const outcomes = await all
      for (const { name, pid } of [gateway.ingress, ...gateway.workers]) {
        assert.isBelow(await peakMb(pid), mostOfLimit * (limits[name] ?? 0), `peak of ${name}`)
      }
      assert.isAbove(small, 3)
      assert.isTrue(outcomes.some(({ status }) =>
        status === 200
      ))
      for (const { retryAfter, status } of outcomes) {
        if (status === 200) continue
        assert.include([429, 503], status)
        assert.match(retryAfter ?? "", /^[1-9]\d*$/)
      }
    }))
})
