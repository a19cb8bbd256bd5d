/**
 * Responses in the background whose worker is killed: before the paid call, or once the provider has declined it, another worker makes
 * it, and after it none does.
 */
import { assert, it } from "@effect/vitest"
import { Gateway, type ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { storedEvents } from "../../fixture/nats/UsageEvents.ts"

interface Response {
  readonly id: string
  readonly status: string
  readonly error: { readonly code: string } | null
}

const ask = async ({ key, url }: Gateway, path: string, init: RequestInit = {}): Promise<Response> => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const answer = await fetch(`${url}/v1/responses${path}`, { ...init, headers })
  return await answer.json() as Response
}

const create = (gateway: Gateway) =>
  ask(gateway, "", {
    method: "POST",
    body: JSON.stringify({ model: "paid-chat", input: "Think.", background: true })
  })

const untilEnded = (gateway: Gateway, id: string) =>
  eventually(
    () => ask(gateway, `/${id}`),
    ({ status }) => status !== "queued" && status !== "in_progress"
  )

/** The worker's write that says that a call is about to be made. */
const isCommitment = (command: string): boolean => /PUB \$KV\.TASKS\.[^]*"task":null/.test(command)

/** The worker's write that says that the provider has declined the call. */
const isDecline = (command: string): boolean => /PUB \$KV\.TASKS\.[^]*"providerTask":null,"declinedBy":/.test(command)

const stops: Readonly<Record<string, (gateway: Gateway, worker: ServiceProcess) => Promise<unknown>>> = {
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

it.live(
  "a response in the background is paid for once, whenever its worker is killed",
  () =>
    Gateway.run({ workers: 0, wired: true }, async (gateway) => {
      const { provider } = gateway
      for (const [step, { calls, events, status }] of Object.entries(expected)) {
        const worker = await gateway.startWorker({})
        const before = { calls: provider.requests.length, events: await storedEvents(gateway.nats) }
        if (step === "calling") provider.behaveOnce({ kind: "silent" })
        if (step === "declined") provider.behaveOnce({ kind: "status", status: 429, retryAfterMs: 60_000 })
        const stopped = stops[step]!(gateway, worker)
        const { id } = await create(gateway)
        await stopped
        await worker.kill()
        const next = await gateway.startWorker({})
        const ended = await untilEnded(gateway, id)
        assert.strictEqual(ended.status, status, step)
        if (status === "failed") assert.strictEqual(ended.error?.code, "upstream_error", step)
        await untilNoJobs(gateway.nats, "chat-tasks")
        await eventually(() => storedEvents(gateway.nats), (count) => count === before.events + events)
        assert.strictEqual(provider.requests.length, before.calls + calls, step)
        await next.terminate()
      }
    }),
  180_000
)
