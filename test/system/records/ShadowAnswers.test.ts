/** The gateway discards the answers to copies of requests for shadow models, and stores none of them. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, it } from "@effect/vitest"
import { eventually } from "../../fixture/general/Eventually.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  services: ["images"],
  models: `
  shadowed: { workload: chat, shadow: { model: shadow, share: 1 }, targets: [{ provider: free }] }
  shadow: { workload: chat, targets: [{ provider: free, model: shadow-upstream }] }
  shadowed-image: { workload: images, shadow: { model: shadow-image, share: 1 }, targets: [{ provider: local }] }
  shadow-image: { workload: images, targets: [{ provider: local }] }`
})

/** The number of records in a bucket, or of objects in a store. */
const count = async (stream: string, subject: string): Promise<number> => {
  const connection = await connect({ servers: shared().nats.url })
  try {
    const { streams } = await jetstreamManager(connection)
    const { state } = await streams.info(stream, { subjects_filter: subject })
    return Object.keys(state.subjects ?? {}).length
  } finally {
    await connection.close()
  }
}

/** Returns the answer once both the model's call and the shadow's are metered, and so have stored what they store. */
const ask = async (path: string, body: object, operation: string): Promise<unknown> => {
  const response = await shared().request(body, { path })
  assert.strictEqual(response.status, 200)
  const answer: unknown = await response.json()
  await eventually(
    async () => (await eventsIn(shared().nats)).filter((event) => event.operation === operation),
    (events) => events.length === 2 && events.every(({ outcome }) => outcome === "success")
  )
  return answer
}

const input = "Say: The lighthouse was built in 1871."
const model = "shadowed"

it("a response is stored once", async () => {
  const answer = await ask("/v1/responses", { model, input }, "responses")
  const { id } = answer as { readonly id: string }
  assert.strictEqual(await count("KV_RESPONSES", `$KV.RESPONSES.*.${id}.*`), 1)
  // with the owner's count
  assert.strictEqual(await count("KV_RESPONSES", ">"), 2)
})

it("a compaction is stored once", async () => {
  await ask("/v1/responses/compact", { model, input }, "responses.compact")
  assert.strictEqual(await count("OBJ_COMPACTIONS", "$O.COMPACTIONS.M.>"), 1)
})

it("a picture is stored once", async () => {
  const picture = { model: "shadowed-image", prompt: "a boat", size: "96x64", response_format: "url" }
  await ask("/v1/images/generations", picture, "images.generations")
  assert.strictEqual(await count("OBJ_RESULTS", "$O.RESULTS.M.>"), 1)
})

it("a chat that its client lets the provider store is stored only by the provider of its own model", async () => {
  const messages = [{ role: "user", content: input }]
  await ask("/v1/chat/completions", { model, messages, store: true }, "chat.completions")
  const stores = new Map(
    shared().provider.requests.map(({ json }) => {
      const { model, store } = json as { readonly model: string; readonly store?: boolean }
      return [model, store]
    })
  )
  assert.deepStrictEqual([stores.get("shadowed"), stores.get("shadow-upstream")], [true, false])
})
