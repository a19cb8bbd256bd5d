/** The admin API for tasks: what it shows of them, and that it stops and deletes them for their clients, too. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import type { TaskPage } from "../../../services/console/api/Tasks.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const gateway = sharedGateway()
let client: ConsoleClient
/** Two keys, and their ids. */
let ours: { readonly id: string; readonly key: string }
let others: typeof ours

/** As JSON has it. */
type Task = Readonly<Record<string, unknown>> & { readonly id: string; readonly status: string }
type Listed = Omit<TaskPage, "tasks"> & { readonly tasks: ReadonlyArray<Task> }

beforeAll(async () => {
  client = await ConsoleClient.signedIn((await gateway().startConsole()).port, "Ada")
  ours = await gateway().createKeyWith({})
  others = await gateway().createKeyWith({})
})

const create = async (
  { key }: typeof ours,
  headers: Readonly<Record<string, string>> = {},
  model = "free-chat"
): Promise<string> => {
  const answer = await gateway().request(chat(model), {
    headers: { authorization: `Bearer ${key}`, prefer: "respond-async", ...headers }
  })
  assert.strictEqual(answer.status, 202)
  return (await answer.json() as Task).id
}

const get = async (id: string) => (await client.send<Task>("GET", `/api/tasks/${id}`)).body
const untilStatus = (id: string, status: string) => eventually(() => get(id), (task) => task.status === status)
const list = async (query: Readonly<Record<string, string>> = {}) => {
  const { body, status } = await client.send<Listed>("GET", `/api/tasks?${new URLSearchParams(query)}`)
  assert.strictEqual(status, 200, JSON.stringify(body))
  return body
}
const asOwner = (id: string, path = "") =>
  fetch(`${gateway().url}/v1/tasks/${id}${path}`, { headers: { authorization: `Bearer ${ours.key}` } })

describe("the tasks of all keys", () => {
  it("are listed with their states, the latest first, and without their content", async () => {
    const first = await create(ours, {}, "paid-chat")
    const second = await create(others)
    await untilStatus(first, "completed")
    await untilStatus(second, "completed")
    gateway().provider.behaveOnce({ kind: "status", status: 400, error: { message: "a secret of the prompt" } })
    const failed = await create(ours)
    await untilStatus(failed, "failed")
    const response = await client.fetch("/api/tasks")
    const text = await response.text()
    assert.notInclude(text, "secret of the prompt")
    const { next, tasks } = JSON.parse(text) as Listed
    assert.isNull(next)
    assert.deepStrictEqual(tasks.map(({ id }) => id), [failed, second, first])
    const { bytes, createdAt, endedAt, traceId, ...fixed } = tasks[2] ?? assert.fail("no task")
    assert.deepStrictEqual<object>(fixed, {
      id: first,
      key: ours.id,
      operation: "chat.completions",
      model: "paid-chat",
      workload: "chat",
      pool: "default",
      status: "completed",
      error: null,
      provider: "paid",
      claims: 1,
      batch: null
    })
    assert.strictEqual(bytes, (await (await asOwner(first, "/content")).arrayBuffer()).byteLength)
    assert.isBelow(Date.parse(String(createdAt)), Date.parse(String(endedAt)))
    assert.match(String(traceId), /^[0-9a-f]{32}$/)
    assert.deepInclude(tasks[0], { status: "failed", error: "ProviderRejected", bytes: null })
  })

  it("are found by key, state and page", async () => {
    const ids = async (query: Readonly<Record<string, string>>) => (await list(query)).tasks.map(({ id }) => id)
    const [failed, second, first] = await ids({})
    assert.deepStrictEqual(await ids({ key: ours.id }), [failed, first])
    assert.deepStrictEqual(await ids({ key: ours.id, status: "failed" }), [failed])
    assert.deepStrictEqual(await ids({ after: failed ?? "" }), [second, first])
    assert.deepStrictEqual(await ids({ key: "key_unknown" }), [])
    for (const query of ["status=lost", `after=${"a".repeat(129)}`, "key=a.b"]) {
      assert.strictEqual((await client.send("GET", `/api/tasks?${query}`)).status, 400, query)
    }
  })

  it("are cancelled, which stops the provider's work", async () => {
    gateway().provider.behaveOnce({ kind: "silent" })
    const calls = gateway().provider.requests.length
    const id = await create(ours)
    await gateway().provider.until(() => gateway().provider.requests.length > calls)
    assert.deepInclude(await get(id), { status: "in_progress", endedAt: null })
    const { body, status } = await client.send<Task>("POST", `/api/tasks/${id}/cancel`)
    assert.deepStrictEqual([status, body.status], [200, "cancelled"])
    await gateway().provider.until(() => gateway().provider.requests.at(-1)?.outcome === "aborted")
    assert.strictEqual((await (await asOwner(id)).json() as Task).status, "cancelled")
    const again = await client.send<Task>("POST", `/api/tasks/${id}/cancel`)
    assert.deepStrictEqual(again.body, await get(id))
  })

  it("are deleted with their answers, and free their idempotency keys", async () => {
    const once = { "idempotency-key": "only once" }
    const id = await create(ours, once)
    await untilStatus(id, "completed")
    assert.strictEqual(await create(ours, once), id)
    assert.strictEqual((await client.send("DELETE", `/api/tasks/${id}`)).status, 204)
    assert.strictEqual((await asOwner(id)).status, 404)
    assert.strictEqual((await asOwner(id, "/content")).status, 404)
    assert.notInclude((await list()).tasks.map((task) => task.id), id)
    assert.notStrictEqual(await create(ours, once), id)
  })

  it("are unknown after that, and by any other id", async () => {
    const id = await create(ours)
    assert.strictEqual((await client.send("DELETE", `/api/tasks/${id}`)).status, 204)
    for (const unknown of [id, "task_0", "key", `task_${"0".repeat(32)}`]) {
      for (const [method, path] of [["GET", ""], ["DELETE", ""], ["POST", "/cancel"]]) {
        const { body, status } = await client.send(method ?? "", `/api/tasks/${unknown}${path}`)
        assert.strictEqual(status, 404)
        assert.deepInclude(body, { _tag: "TaskUnknown", id: unknown })
      }
    }
    for (const wrong of ["*", ">", "a*", "%3E", "a.b"]) {
      assert.strictEqual((await client.send("GET", `/api/tasks/${wrong}`)).status, 400, wrong)
    }
  })

  it("leave a record of what administrators did to them", async () => {
    const id = await create(ours)
    await client.send("DELETE", `/api/tasks/${id}`)
    const { body } = await client.send<ReadonlyArray<Readonly<Record<string, unknown>>>>("GET", "/api/key-changes")
    const about = body.filter(({ action }) => action === "cancelled" || action === "deleted")
    assert.deepInclude(about[0], { action: "deleted", by: "Ada", key: ours.id, settings: { task: id } })
    // once for each task, and not for one that had ended
    assert.strictEqual(about.filter(({ action }) => action === "cancelled").length, 1)
  })

  it("are only for administrators", async () => {
    const { url } = client
    assert.strictEqual((await fetch(`${url}/api/tasks`)).status, 401)
    const asClient = await fetch(`${url}/api/tasks`, { headers: { authorization: `Bearer ${ours.key}` } })
    assert.strictEqual(asClient.status, 401)
  })
})
