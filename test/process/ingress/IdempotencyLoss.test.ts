/** Requests with idempotency keys whose ingress is killed: at another ingress the same request gets the answer of one call. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

/** The ingress's writes, after each of which it is killed. */
const steps: Readonly<Record<string, RegExp>> = {
  "binds the key": /PUB \$KV\.TASKS\.[^. ]+\.key\./,
  "stores the request": /PUB \$KV\.TASKS\.[^. ]+\.task_\w+\.request/,
  "stores the record": /PUB \$KV\.TASKS\.[^. ]+\.task_\w+ /,
  "submits the job": /PUB jobs3\.chat-tasks\./
}

it.live(
  "the same request at another ingress gets the answer of one call, whenever the first ingress is killed",
  () =>
    Gateway.run({ wired: true }, async (gateway) => {
      const { provider } = gateway
      const body = { model: "paid-chat", messages: [{ role: "user", content: "Hello" }] }
      for (const [step, write] of Object.entries(steps)) {
        const calls = provider.requests.length
        const headers = { "idempotency-key": step }
        const victim = await gateway.startIngress()
        const written = victim.holdAt((command) => write.test(command) ? "after" : undefined)
        const lost = gateway.request(body, { headers, ingress: victim }).catch(() => "lost")
        await written
        await victim.kill()
        assert.strictEqual(await lost, "lost", step)
        const answers = await Promise.all([1, 2].map(async () => {
          const answer = await gateway.request(body, { headers })
          return { status: answer.status, text: await answer.text() }
        }))
        assert.strictEqual(answers[0]?.status, 200, step)
        assert.deepStrictEqual(answers[0], answers[1], step)
        assert.strictEqual(provider.requests.length, calls + 1, step)
      }
    }),
  300_000
)
