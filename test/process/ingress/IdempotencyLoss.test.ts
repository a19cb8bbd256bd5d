/** Requests with idempotency keys whose ingress is killed: at another ingress the same request gets the answer of one call. */
import { assert, it } from "@effect/vitest"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"

/** The ingress's writes, after each of which it is killed. */
const steps: Readonly<Record<string, RegExp>> = {
  "binds the key": /PUB \$KV\.TASKS\.[^. ]+\.key\./,
  "stores the request": /PUB \$KV\.TASKS\.[^. ]+\.task_\w+\.request/,
  "stores the record": /PUB \$KV\.TASKS\.[^. ]+\.task_\w+ /,
  "submits the job": /PUB jobs3\.chat-tasks\./
}

const shared = sharedGateway()

it.each(Object.entries(steps))(
  "the same request at another ingress gets the answer of one call if the first ingress is killed when it %s",
  async (step, write) => {
    const { provider } = shared()
    const calls = provider.requests.length
    const body = { model: "paid-chat", messages: [{ role: "user", content: "Hello" }] }
    const headers = { "idempotency-key": step }
    const victim = await startProcess(shared(), "ingress", { wired: true })
    const written = victim.holdAt((command) => write.test(command) ? "after" : undefined)
    const lost = shared().request(body, { headers, ingress: victim }).catch(() => "lost")
    await written
    await victim.kill()
    assert.strictEqual(await lost, "lost")
    const answers = await Promise.all([1, 2].map(async () => {
      const answer = await shared().request(body, { headers })
      return { status: answer.status, text: await answer.text() }
    }))
    assert.strictEqual(answers[0]?.status, 200)
    assert.deepStrictEqual(answers[0], answers[1])
    assert.strictEqual(provider.requests.length, calls + 1)
  }
)
