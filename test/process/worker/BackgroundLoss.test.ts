/**
 * Responses in the background whose worker is killed: before the paid call, or once the provider has declined it, another worker makes
 * it, and after it none does.
 */
import { assert, it } from "@effect/vitest"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"
import type { ServiceHere } from "../../fixture/gateway/ServiceHere.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { expireClaims } from "../../fixture/nats/LostWorkers.ts"
import { storedEvents } from "../../fixture/nats/UsageEvents.ts"

interface Response {
  readonly id: string
  readonly status: string
  readonly error: { readonly code: string } | null
}

const ask = async ({ key, url }: AnyGateway, path: string, init: RequestInit = {}): Promise<Response> => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const answer = await fetch(`${url}/v1/responses${path}`, { ...init, headers })
  return await answer.json() as Response
}

const create = (gateway: AnyGateway) =>
  ask(gateway, "", {
    method: "POST",
    body: JSON.stringify({ model: "paid-chat", input: "Think.", background: true })
  })

const untilEnded = (gateway: AnyGateway, id: string) =>
  eventually(
    () => ask(gateway, `/${id}`),
    ({ status }) => status !== "queued" && status !== "in_progress"
  )

/** The worker's write that says that a call is about to be made. */
const isCommitment = (command: string): boolean => /PUB \$KV\.TASKS\.[^]*"task":null/.test(command)

/** The worker's write that says that the provider has declined the call. */
const isDecline = (command: string): boolean => /PUB \$KV\.TASKS\.[^]*"providerTask":null,"declinedBy":/.test(command)

const stops: Readonly<Record<string, (gateway: AnyGateway, worker: ServiceHere) => Promise<unknown>>> = {
  "about to commit": (_, worker) => worker.holdAt((command) => isCommitment(command) ? "before" : undefined),
  "committed": (_, worker) => worker.holdAt((command) => isCommitment(command) ? "after" : undefined),
  "declined": (_, worker) => worker.holdAt((command) => isDecline(command) ? "after" : undefined),
  "calling": async ({ provider }) => {
    const count = provider.requests.length
    await provider.until(() => provider.requests.length > count)
  }
}

const expected = {
  "about to commit": { status: "completed", calls: 1, events: 1 },
  "committed": { status: "failed", calls: 0, events: 1 },
  "declined": { status: "completed", calls: 2, events: 1 },
  "calling": { status: "failed", calls: 1, events: 1 }
} as const

it.live("a response in the background is paid for once, whenever its worker is killed", () =>
  Gateway.runHere({ workers: 0, wired: true }, async (gateway) => {
    const { nats, provider } = gateway
    let events = 0
    for (const [step, { calls, status, ...more }] of Object.entries(expected)) {
      const worker = await gateway.startWorker()
      const callsBefore = provider.requests.length
      if (step === "calling") provider.behaveOnce({ kind: "silent" })
      if (step === "declined") provider.behaveOnce({ kind: "status", status: 429, retryAfterMs: 60_000 })
      const stopped = stops[step]!(gateway, worker)
      const { id } = await create(gateway)
      await stopped
      worker.kill()
      await expireClaims(nats, "chat-tasks")
      const next = await gateway.startWorker()
      const ended = await untilEnded(gateway, id)
      assert.strictEqual(ended.status, status, step)
      if (status === "failed") assert.strictEqual(ended.error?.code, "upstream_error", step)
      await untilNoJobs(nats, "chat-tasks")
      events += more.events
      await eventually(() => storedEvents(nats), (count) => count === events)
      assert.strictEqual(provider.requests.length, callsBefore + calls, step)
      await next.terminate()
    }
  }))
