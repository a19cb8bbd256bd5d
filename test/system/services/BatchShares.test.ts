/** Batches of one tenant leave slots to those of others, however long they take. */
import { assert, describe, it } from "@effect/vitest"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  services: ["batches"],
  environmentOf: (service) => service === "batches" ? { WORKER_SLOTS: "2" } : {}
})

describe("a batch", () => {
  it("runs beside those of another tenant, which never end", async () => {
    const clientOf = async () => new BatchClient({ url: shared().url, key: (await shared().createKeyWith({})).key })
    const [slow, other] = [await clientOf(), await clientOf()]
    shared().provider.behave({ kind: "silent" })
    const batches = [await slow.create("paid-chat", 1), await slow.create("paid-chat", 1)]
    await shared().provider.until(() => shared().provider.open > 0)
    assert.deepInclude(await other.ended((await other.create("local-chat", 1)).id), { status: "completed" })
    shared().provider.behave({ kind: "answer" })
    for (const { id } of batches) await slow.cancel(id)
    for (const { id } of batches) await slow.ended(id)
  })
})
