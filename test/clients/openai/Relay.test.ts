/**
 * Operations other than chat, relayed to a provider of the OpenAI dialect under its own path and model, with its own answer.
 */
import { assert, describe, it } from "@effect/vitest"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const workloads = ["embeddings", "images", "rerank", "speech"]

const shared = sharedGateway({
  services: workloads,
  providers: (baseUrl) =>
    `  both: { protocol: openai, baseUrl: "${baseUrl}", options: { apis: [chatCompletions, responses] } }`,
  models: [
    ...["chat", ...workloads].map((workload) =>
      `  relayed-${workload}: { workload: ${workload}, targets: [{ provider: free, model: upstream-model }] }`
    ),
    "  relayed-responses: { workload: chat, targets: [{ provider: both, model: upstream-model }] }"
  ].join("\n")
})

interface Case {
  readonly path: string
  /** The end of the model's name. */
  readonly workload: string
  /** The provider's path, below its base URL. */
  readonly upstream: string
  readonly body: string
  readonly answer: string
}

const cases: ReadonlyArray<Case> = [
  {
    path: "/v1/completions",
    workload: "chat",
    upstream: "/v1/completions",
    body: `{ "prompt" : "Once",  "unheard_of": 1.0, "model": "MODEL" }`,
    answer:
      `{"id":"c","object":"text_completion","model":"MODEL","choices":[{"text":" upon","index":0}],"usage":{"prompt_tokens":1.0},"x":1.0}`
  },
  {
    path: "/v1/embeddings",
    workload: "embeddings",
    upstream: "/v1/embeddings",
    body: `{"model":"MODEL","input":["one","two"],"encoding_format":"float"}`,
    answer:
      `{"object":"list","model":"MODEL","data":[{"object":"embedding","index":0,"embedding":[0.10,1e-3]}],"usage":{"total_tokens":2}}`
  },
  {
    path: "/v1/rerank",
    workload: "rerank",
    upstream: "/v1/rerank",
    body: `{"model":"MODEL","query":"q","documents":["a","b"]}`,
    answer: `{"id":"r","results":[{"index":1,"relevance_score":0.50}],"meta":{"own":true}}`
  },
  {
    path: "/v1/images/generations",
    workload: "images",
    upstream: "/v1/images/generations",
    body: `{"model":"MODEL","prompt":"a boat"}`,
    answer: `{"created":1,"data":[{"b64_json":"aaaa"}],"usage":{"input_tokens":1,"output_tokens":2}}`
  },
  {
    path: "/v1/responses/compact",
    workload: "responses",
    upstream: "/v1/responses/compact",
    body: `{"model":"MODEL","input":"a story"}`,
    answer:
      `{"id":"resp_1","object":"response.compaction","output":[],"usage":{"input_tokens":3,"output_tokens":4},"error":null}`
  }
]

const post = (path: string, body: string) =>
  fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
    body
  })

describe("a relayed operation", () => {
  it.each(cases.map((one) => [one.path, one] as const))(
    "%s is relayed unchanged in both directions",
    async (_, one) => {
      const name = `relayed-${one.workload}`
      shared().provider.behaveOnce({ kind: "raw", pieces: [one.answer.replaceAll("MODEL", "upstream-model")] })
      const { received, result } = await receivedBy(shared(), () => post(one.path, one.body.replaceAll("MODEL", name)))
      const answer = await result
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(await answer.text(), one.answer.replaceAll("MODEL", name))
      assert.strictEqual(received.path, one.upstream)
      assert.strictEqual(received.body.toString(), one.body.replaceAll("MODEL", "upstream-model"))
    }
  )

  it("/v1/engines/{model}/embeddings is relayed to the provider's embeddings, with its own model name", async () => {
    shared().provider.behaveOnce({ kind: "raw", pieces: [`{"object":"list","data":[]}`] })
    const { received, result } = await receivedBy(
      shared(),
      () => post("/v1/engines/relayed-embeddings/embeddings", `{"input":"one"}`)
    )
    assert.strictEqual((await result).status, 200)
    assert.strictEqual(received.path, "/v1/embeddings")
    assert.deepStrictEqual(JSON.parse(received.body.toString()), { model: "upstream-model", input: "one" })
  })

  it("/v1/audio/speech returns the provider's bytes unchanged", async () => {
    const sound = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251)
    shared().provider.behaveOnce({ kind: "raw", pieces: [sound], headers: { "content-type": "audio/mpeg" } })
    const { received, result } = await receivedBy(
      shared(),
      () => post("/v1/audio/speech", `{"model":"relayed-speech","input":"Hello","voice":"nova"}`)
    )
    const answer = await result
    assert.strictEqual(answer.headers.get("content-type"), "audio/mpeg")
    assert.deepStrictEqual(new Uint8Array(await answer.arrayBuffer()), sound)
    assert.strictEqual(received.path, "/v1/audio/speech")
  })
})
