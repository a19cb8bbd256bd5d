/**
 * The catalogue and the requests of the proof of billing: every operation, every chat dialect at every chat protocol, fallbacks,
 * continuations, answers in the background, videos, idempotency keys, and clients that leave.
 *
 * A unit of any kind costs one US dollar, so that a cost is a sum of units.
 */
import type { Ask } from "../../fixture/client/Load.ts"
import { sampleRequests } from "../../fixture/client/Requests.ts"
import { type GatewayOptions, providerKey } from "../../fixture/gateway/Gateway.ts"
import type { Behaviour } from "../../fixture/provider/FakeProvider.ts"

const price = "{ inputPerMillion: 1000000, outputPerMillion: 1000000, perImage: 1, perSecond: 1, perSearchUnit: 1 }"

const settings = `apiKey: ${providerKey}, breaker: { enabled: false }, limits: { adaptive: false }, ` +
  "timeouts: { firstByteMs: 1000, idleMs: 1000 }"

/** The chat models: `billed-free` retries, `billed-paid` does not, `billed-pair` has a fallback, `billed-continued` continues. */
const chatModels = {
  "billed-free": "targets: [{ provider: free-openai }]",
  "billed-paid": "targets: [{ provider: paid-openai }]",
  "billed-pair": "targets: [{ provider: paid-openai }, { provider: free-openai, priority: 1 }]",
  "billed-continued": "continuation: true, targets: [{ provider: paid-openai, continues: assistant }, " +
    "{ provider: free-openai, continues: assistant, priority: 1 }]",
  "billed-responses": "targets: [{ provider: paid-responses }]",
  "billed-anthropic": "continuation: true, targets: [{ provider: paid-anthropic, continues: assistant }]",
  "billed-gemini": "targets: [{ provider: paid-gemini }]",
  "billed-cohere": "targets: [{ provider: paid-cohere }]"
}

/** Models that serve only one operation, by its name. All other operations use chat models. */
const modelsOf: Readonly<Record<string, string>> = {
  "completions": "billed-pair",
  "embeddings": "billed-embedding",
  "engines.embeddings": "billed-embedding",
  "embedContent": "billed-embedding",
  "batchEmbedContents": "billed-embedding",
  "embed": "billed-cohere-embedding",
  "rerank": "billed-rerank",
  "audio.speech": "billed-speech",
  "images.generations": "billed-image",
  "images.edits": "billed-image",
  "video.generations": "billed-video",
  "moderations": "billed-moderation",
  "audio.transcriptions": "billed-transcription",
  "audio.translations": "billed-whisper",
  "responses.compact": "billed-responses",
  "responses.input_tokens": "billed-responses",
  "messages.count_tokens": "billed-anthropic",
  "countTokens": "billed-gemini"
}

const otherModels = [
  "billed-embedding: { workload: embeddings, targets: [{ provider: free-openai }]",
  "billed-cohere-embedding: { workload: embeddings, targets: [{ provider: paid-cohere }]",
  "billed-rerank: { workload: rerank, targets: [{ provider: paid-cohere }]",
  "billed-speech: { workload: speech, targets: [{ provider: paid-openai }]",
  "billed-transcription: { workload: speech, targets: [{ provider: paid-openai }]",
  "billed-whisper: { workload: speech, targets: [{ provider: free-openai, model: whisper-1 }]",
  "billed-image: { workload: images, targets: [{ provider: paid-openai }]",
  "billed-video: { workload: video, targets: [{ provider: paid-dashscope, model: wan2.5-t2v-preview }]",
  "billed-moderation: { workload: chat, targets: [{ provider: free-openai }]"
]

export const catalogue = {
  providers: (baseUrl) => {
    const { origin } = new URL(baseUrl)
    return [
      `free-openai: { protocol: openai, baseUrl: "${baseUrl}", idempotent: true`,
      `paid-openai: { protocol: openai, baseUrl: "${baseUrl}", idempotent: false`,
      `paid-responses: { protocol: openai, baseUrl: "${baseUrl}", options: { apis: [responses] }`,
      `paid-anthropic: { protocol: anthropic, baseUrl: "${origin}"`,
      `paid-gemini: { protocol: gemini, baseUrl: "${origin}/v1beta"`,
      `paid-cohere: { protocol: cohere, baseUrl: "${origin}"`,
      `paid-dashscope: { protocol: dashscope, baseUrl: "${origin}", options: { pollIntervalMs: 20 }`
    ].map((provider) => `  ${provider}, ${settings} }`).join("\n")
  },
  models: [
    ...Object.entries(chatModels).map(([name, targets]) => `${name}: { workload: chat, ${targets}`),
    ...otherModels
  ].map((model) => `  ${model}, price: ${price} }`).join("\n")
} satisfies GatewayOptions

/** How providers misbehave. */
export const misbehaviours: ReadonlyArray<Behaviour> = [
  { kind: "status", status: 500 },
  { kind: "status", status: 429, retryAfterMs: 20 },
  { kind: "reset" },
  { kind: "silent", forMs: 1_500 },
  { kind: "cut", after: 0 },
  { kind: "cut", after: 4, bytes: 7 },
  { kind: "cut", after: 4, forMs: 300 },
  { kind: "truncate", after: 4 },
  { kind: "unterminated" },
  { kind: "error", after: 3 },
  { kind: "hold", after: 3, forMs: 1_500 }
]

/** Bodies of the chat operations, with this text. */
const words = "The lighthouse was built in 1871 and its keeper kept bees until the winter storm took the hives".split(
  " "
)

const textOf = (random: () => number): string =>
  Array.from({ length: 1 + Math.floor(random() * 40) }, () => words[Math.floor(random() * words.length)]).join(" ")

/** A sample request for this model, with this text. */
const sampleFor = (at: number, model: string, text: string) => {
  const sample = sampleRequests[at % sampleRequests.length]!
  const { operation } = sample
  const name = modelsOf[operation] ?? model
  const body = JSON.parse(JSON.stringify(sample.body).replaceAll(/The lighthouse was built[^"]*/g, text)) as object
  return {
    operation,
    path: sample.path.replace(sample.model, name),
    headers: sample.headers,
    model: name,
    body: "model" in body ? { ...body, model: name } : body
  }
}

/** Operations whose answer a field of the body turns into a stream. */
const canStream = ["chat.completions", "completions", "messages", "responses"]

const pick = <A>(all: ReadonlyArray<A>, random: () => number): A => all[Math.floor(random() * all.length)]!

/** The request with this index, for one of these API keys. */
export const ask = (index: number, random: () => number, keys: ReadonlyArray<string>): Ask => {
  const model = pick(Object.keys(chatModels), random)
  const { body, headers, operation, path, ...sample } = sampleFor(index, model, textOf(random))
  const isStream = random() < 0.6
  const isBackground = operation === "responses" && random() < 0.3
  const isKept = !isBackground && operation !== "video.generations" && random() < 0.05
  return {
    ...sample,
    path,
    headers: {
      ...headers,
      "authorization": `Bearer ${pick(keys, random)}`,
      ...(isKept ? { "idempotency-key": `key-${index}` } : {})
    },
    body: {
      ...body,
      ...(canStream.includes(operation) ? { stream: isStream && !isBackground } : {}),
      ...(operation === "chat.completions" && !isStream ? { stream_options: undefined } : {}),
      ...(isBackground ? { background: true } : {})
    },
    ...(random() < 0.15 ? { leavesAfterMs: Math.floor(random() * 600) } : {})
  }
}
