/** Batches in the admin API: their progress and files, and that administrators stop them and delete them when they have ended. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI, { toFile } from "openai"
import type { TaskPage } from "../../../services/console/api/Tasks.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const gateway = sharedGateway({ services: ["batches"] })
let client: ConsoleClient

type Task = Readonly<Record<string, unknown>> & {
  readonly id: string
  readonly batch: Readonly<Record<string, unknown>>
}

beforeAll(async () => {
  client = await ConsoleClient.signedIn((await gateway().startConsole()).port, "Ada")
})

const get = async (id: string) => (await client.send<Task>("GET", `/api/tasks/${id}`)).body
const stop = (id: string) => client.send<Task>("POST", `/api/tasks/${id}/cancel`)
const remove = (id: string) => client.send("DELETE", `/api/tasks/${id}`)
const list = async (query = "") =>
  (await client.send<Omit<TaskPage, "tasks"> & { readonly tasks: ReadonlyArray<Task> }>("GET", `/api/tasks?${query}`))
    .body.tasks
/** Waits until exactly this task has the status in the list. The console reads the ids of new tasks only every so often. */
const untilListed = (id: string, status: string) =>
  eventually(() => list(`status=${status}`), (tasks) => tasks.map((task) => task.id).join() === id)

describe("the batches of all keys", () => {
  it("are listed among the tasks, with what their clients see of their progress", async () => {
    const batches = new BatchClient(gateway())
    const { error_file_id, id, output_file_id } = await batches.ended((await batches.create("free-chat", 5)).id)
    const [task] = await list()
    assert.deepInclude(task, {
      id,
      operation: "chat.completions",
      status: "completed",
      workload: null,
      error: null,
      batch: {
        status: "completed",
        total: 5,
        completed: 5,
        failed: 0,
        output: output_file_id,
        errors: error_file_id
      }
    })
    assert.isNotNull(output_file_id)
    assert.isString(task?.["endedAt"])
    assert.deepStrictEqual(await get(id), task)
  })

  it("are stopped, and keep what is finished; and are deleted when they have ended, but not before", async () => {
    const batches = new BatchClient(gateway())
    gateway().provider.behaveOnce({ kind: "silent" })
    const { id } = await batches.create("free-chat", 4)
    await batches.untilDone(id, 3)
    const running = await get(id)
    assert.deepInclude(running.batch, { status: "in_progress", total: 4, completed: 3, failed: 0, output: null })
    assert.isNull(running["endedAt"])
    const refused = await remove(id)
    assert.strictEqual(refused.status, 409)
    assert.deepInclude(refused.body, { _tag: "BatchRunning" })
    const stopped = await stop(id)
    assert.strictEqual(stopped.status, 200)
    assert.include(["cancelling", "cancelled"], stopped.body.batch["status"])
    const ended = await batches.ended(id)
    assert.deepInclude(ended, { status: "cancelled", request_counts: { total: 4, completed: 3, failed: 1 } })
    assert.deepInclude(await get(id), { status: "cancelled" })
    await untilListed(id, "cancelled")
    // it stays as it is
    assert.deepStrictEqual((await stop(id)).body, await get(id))

    assert.strictEqual((await remove(id)).status, 204)
    assert.strictEqual((await remove(id)).status, 404)
    assert.isFalse((await list()).some((task) => task.id === id))
    const { answers, errors } = await batches.results(ended)
    assert.deepStrictEqual([answers.length, errors.length], [3, 1])
    const changes = (await client.send<ReadonlyArray<{ readonly action: string }>>("GET", "/api/key-changes")).body
    const actions = changes.map(({ action }) => action)
    assert.deepStrictEqual(actions.filter((action) => action !== "created"), ["deleted", "cancelled"])
  })

  it("count as failed if their file was refused", async () => {
    const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey: gateway().key, maxRetries: 0 })
    const endpoint = "/v1/chat/completions"
    const line = { custom_id: "a", method: "POST", url: endpoint, body: { model: "free-chat", stream: true } }
    const file = await openai.files.create({
      file: await toFile(Buffer.from(JSON.stringify(line)), "in.jsonl"),
      purpose: "batch"
    })
    const { id } = await openai.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" })
    await new BatchClient(gateway()).ended(id)
    const { errors } = await openai.batches.retrieve(id)
    const code = errors?.data?.[0]?.code ?? assert.fail("the batch names no mistake")
    assert.deepInclude(await get(id), {
      status: "failed",
      error: code,
      batch: { status: "failed", total: 1, completed: 0, failed: 0, output: null, errors: null }
    })
    await untilListed(id, "failed")
  })
})
