/** How much the tasks of an owner may store, over all ingress processes. */
import { assert, describe, it } from "@effect/vitest"
import { chat } from "../../fixture/client/ChatClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"

const shared = sharedGateway({ ingresses: 2, environment: { GATEWAY_TASKS_MIB: "1" } })

interface Task {
  readonly id: string
  readonly status: string
}

const create = (key: string, kilobytes: number, ingress = shared().ingress, more: Record<string, string> = {}) => {
  const body = { ...chat("paid-chat"), user: "x".repeat(kilobytes * 1024) }
  const headers = { authorization: `Bearer ${key}`, prefer: "respond-async", ...more }
  return shared().request(body, { headers, ingress })
}

const ask = async (key: string, path: string, method = "GET", ingress = shared().ingress): Promise<Task> => {
  const answer = await fetch(`${ingress.url}/v1/tasks/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` }
  })
  return await answer.json() as Task
}

describe("tasks of an owner", () => {
  it("are refused beyond its quota until one is deleted, at any ingress", async () => {
    const { key } = await shared().createKeyWith({})
    const [one, two] = shared().ingresses
    const first = await create(key, 300, one)
    const { id } = await first.json() as Task
    for (const ingress of [two, one]) assert.strictEqual((await create(key, 300, ingress)).status, 202)
    const refused = await create(key, 300, two)
    assert.strictEqual(refused.status, 413)
    const { error } = await refused.json() as { readonly error: { readonly code: string; readonly message: string } }
    assert.strictEqual(error.code, "task_quota_exceeded")
    assert.match(error.message, /1 MiB.*GATEWAY_TASKS_MIB/s)
    // others have quotas of their own
    const other = await shared().createKeyWith({})
    assert.strictEqual((await create(other.key, 300, two)).status, 202)
    await eventually(() => ask(key, id), ({ status }) => status === "completed")
    // many requests that delete a task make room for one
    await Promise.all(Array.from({ length: 8 }, (_, count) => ask(key, id, "DELETE", shared().ingresses[count % 2])))
    assert.strictEqual((await create(key, 300, two)).status, 202)
    assert.strictEqual((await create(key, 300, one)).status, 413)
  })

  it("count no more once they are deleted, at the same time and at any ingress", async () => {
    const { key } = await shared().createKeyWith({})
    const fill = async () => {
      const answers = await Promise.all(Array.from({ length: 6 }, () => create(key, 150)))
      assert.deepStrictEqual(answers.map(({ status }) => status), Array.from({ length: 6 }, () => 202))
      const tasks = await Promise.all(answers.map((answer) => answer.json() as Promise<Task>))
      const done = tasks.map(({ id }) => eventually(() => ask(key, id), ({ status }) => status === "completed"))
      return Promise.all(done)
    }
    for (let round = 0; round < 3; round++) {
      const tasks = await fill()
      await Promise.all(tasks.map(({ id }) => ask(key, id, "DELETE")))
    }
  })

  it("that are refused leave their idempotency key free for a smaller request", async () => {
    const { key } = await shared().createKeyWith({})
    const keyed = { "idempotency-key": "smaller" }
    assert.strictEqual((await create(key, 1_100, undefined, keyed)).status, 413)
    assert.strictEqual((await create(key, 100, undefined, keyed)).status, 202)
  })

  it("count a little each, so that their number is bounded", async () => {
    const { key } = await shared().createKeyWith({})
    const statuses: Array<number> = []
    // 8 KiB each, and the rest of a block at each of two ingresses
    while (statuses.length < 140 && statuses.at(-1) !== 413) {
      const answer = await create(key, 0, shared().ingresses[statuses.length % 2])
      await answer.arrayBuffer()
      statuses.push(answer.status)
    }
    assert.strictEqual(statuses.at(-1), 413)
    assert.isAtLeast(statuses.length, 60)
  })
})
