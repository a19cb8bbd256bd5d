/** How long a tenant with few requests waits beside one with hundreds of long streams, open or queued. */
import { chat } from "../fixture/client/ChatClient.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import type { Gateway } from "../fixture/gateway/Gateway.ts"
import type { NatsAddress } from "../fixture/nats/NatsServer.ts"
import { percentile } from "./Percentile.ts"

const slots = 64
const streams = 500
const quietEveryMs = 200

/** The gateway's settings: no stream times out in the queue. */
export const environment = { WORKER_SLOTS: String(slots), GATEWAY_QUEUE_TIMEOUT_MS: "600000" }

export interface LongStreamsReport {
  readonly asked: number
  /** Failed requests of the quiet tenant. */
  readonly failed: number
  readonly p95: number
  readonly most: number
  /** The slots that the streams held at the end. */
  readonly open: number
}

/** Measures for this many milliseconds from the start of the streams. */
export const longStreams = async (gateway: Gateway<NatsAddress>, forMs: number): Promise<LongStreamsReport> => {
  const { ingresses, provider } = gateway
  const { key } = await gateway.createKeyWith({ priorityClass: "standard" })
  const leaving = new AbortController()
  const paced = { behave: { kind: "paced", chunks: 300, everyMs: 100 } }
  const noisy = Array.from({ length: streams }, async (_, index) => {
    const ingress = ingresses[index % ingresses.length]!
    const answer = await gateway.request(chat("paid-chat", { stream: true, metadata: paced }), {
      ingress,
      signal: leaving.signal
    })
    await answer.body?.pipeTo(new WritableStream())
  })
  const all = Promise.allSettled(noisy)
  const waits: Array<number> = []
  let failed = 0
  const until = performance.now() + forMs
  for (let asked = 0; performance.now() < until; asked++) {
    const from = performance.now()
    const ingress = ingresses[asked % ingresses.length]!
    const answer = await gateway.request(chat("paid-chat"), { headers: { authorization: `Bearer ${key}` }, ingress })
    await answer.arrayBuffer()
    if (answer.status !== 200) failed++
    waits.push(performance.now() - from)
    await new Promise((resolve) => setTimeout(resolve, quietEveryMs))
  }
  const { open } = provider
  leaving.abort()
  await all
  await eventually(() => Promise.resolve(provider.open), (left) => left === 0, 30_000)
  return { asked: waits.length, failed, p95: percentile(waits, 0.95), most: Math.max(...waits), open }
}
