/** Waiting videos fill neither the queue nor the disk of other tenants. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { jobStream, newestOf } from "../../../shared/bus/protocol/Subjects.ts"
import { stores, storeStream } from "../../../shared/nats/Storage.ts"
import { smallVideo, VideoClient } from "../../fixture/client/VideoClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

// no worker: all videos wait
const shared = sharedGateway({ workers: 0, environment: { GATEWAY_TASKS_MIB: "1" } })

const clientOf = async () => new VideoClient(shared(), (await shared().createKeyWith({})).key)

const refusal = async (answer: Response) => {
  const { error } = await answer.json() as { readonly error: { readonly code: string } }
  return { status: answer.status, code: error.code }
}

describe("videos", () => {
  it("of one owner have a quota", async () => {
    const client = await clientOf()
    const id = await client.create(smallVideo, { "idempotency-key": "first" })
    for (let count = 1; count < 8; count++) await client.create(smallVideo)
    assert.deepStrictEqual(await refusal(await client.post(smallVideo)), { status: 413, code: "task_quota_exceeded" })
    assert.strictEqual(await client.create(smallVideo, { "idempotency-key": "first" }), id)
    await (await clientOf()).create(smallVideo)
  })

  it("that find no room in the queue leave nothing behind", async () => {
    const connection = await connect({ servers: shared().nats.url })
    const manager = await jetstreamManager(connection)
    const objects = async () => (await manager.streams.info(storeStream(stores.videoContent))).state.messages
    const queue = jobStream("video", newestOf("video"))
    const { config, state } = await manager.streams.info(queue)
    await manager.streams.update(queue, { max_msgs: state.messages })
    const before = await objects()
    assert.deepStrictEqual(await refusal(await (await clientOf()).post(smallVideo)), {
      status: 429,
      code: "queue_full"
    })
    await eventually(objects, (count) => count === before)
    await manager.streams.update(queue, { max_msgs: config.max_msgs })
    await (await clientOf()).create(smallVideo)
    await connection.close()
  })
})
