/** The playground's operations: the form, request and kind of answer of each. */
import type { Workload } from "../../../../shared/contract/Operation.ts"

export type Value = string | number | boolean
export type Values = Readonly<Record<string, Value>>

export interface Field {
  readonly name: string
  readonly label: string
  readonly kind: "text" | "area" | "lines" | "number" | "choice" | "switch" | "picture" | "sound"
  readonly initial: Value
  readonly hint?: string
  readonly choices?: ReadonlyArray<string>
  readonly minimum?: number
  readonly maximum?: number
  readonly step?: number
}

export interface Operation {
  /** The operation's name in the contract. */
  readonly name: string
  readonly title: string
  readonly workloads: ReadonlyArray<Workload>
  readonly fields: ReadonlyArray<Field>
  readonly path: (model: string, values: Values) => string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: (model: string, values: Values) => object
  /** How `Answer.ts` reads the answer. */
  readonly answer: "text" | "pictures" | "sound" | "video" | "vectors" | "ranking" | "json"
}

/** Omits empty fields. */
const given = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "" && value !== undefined))

const linesOf = (value: Value | undefined): ReadonlyArray<string> =>
  String(value ?? "").split("\n").map((line) => line.trim()).filter((line) => line !== "")

const system: Field = { name: "system", label: "System", kind: "area", initial: "", hint: "Optional" }
const stream: Field = { name: "stream", label: "Stream the answer", kind: "switch", initial: true }

const number = (
  name: string,
  label: string,
  initial: number | string,
  bounds: Pick<Field, "minimum" | "maximum" | "step">
): Field => ({ name, label, kind: "number", initial, ...bounds })

const choice = (name: string, label: string, choices: ReadonlyArray<string>, initial: string): Field => ({
  name,
  label,
  kind: "choice",
  initial,
  choices
})

const maxTokens = (initial: number | string): Field => number("max_tokens", "Maximum tokens", initial, { minimum: 1 })
const temperature = (maximum: number): Field =>
  number("temperature", "Temperature", "", { minimum: 0, maximum, step: 0.1 })
const prompt = (initial: string): Field => ({ name: "prompt", label: "Prompt", kind: "area", initial })
const seed = number("seed", "Seed", "", { minimum: 0 })

const about = "What is a model gateway, and who needs one?"

const texts: Field = {
  name: "input",
  label: "Texts",
  kind: "lines",
  initial: "a beekeeper on a hill\nsomeone who looks after bees\na lighthouse in a storm",
  hint: "One per line"
}
const text: Field = { name: "text", label: "Text", kind: "text", initial: "a beekeeper on a hill" }
const soundFile: Field = {
  name: "file",
  label: "Sound",
  kind: "sound",
  initial: "",
  hint: "Needs a model that recognises speech."
}
const dimensions = number("dimensions", "Dimensions", "", { minimum: 1, maximum: 4096 })

const embeddings: Operation = {
  name: "embeddings",
  title: "Embeddings",
  workloads: ["embeddings"],
  fields: [texts, dimensions],
  path: () => "/v1/embeddings",
  body: (model, { dimensions, input }) => given({ model, input: linesOf(input), dimensions }),
  answer: "vectors"
}

export const operations: ReadonlyArray<Operation> = [
  {
    name: "chat.completions",
    title: "Chat",
    workloads: ["chat"],
    fields: [system, { ...prompt(about), label: "Message" }, stream, temperature(2), maxTokens("")],
    path: () => "/v1/chat/completions",
    body: (model, { max_tokens, prompt, stream, system, temperature }) =>
      given({
        model,
        messages: [...(system === "" ? [] : [{ role: "system", content: system }]), { role: "user", content: prompt }],
        stream,
        temperature,
        max_tokens
      }),
    answer: "text"
  },
  {
    name: "messages",
    title: "Messages",
    workloads: ["chat"],
    fields: [system, { ...prompt(about), label: "Message" }, stream, temperature(1), maxTokens(500)],
    path: () => "/v1/messages",
    headers: { "vendor-version": "2023-06-01" },
    body: (model, { max_tokens, prompt, stream, system, temperature }) =>
      given({ model, max_tokens, system, messages: [{ role: "user", content: prompt }], stream, temperature }),
    answer: "text"
  },
  {
    name: "responses",
    title: "Responses",
    workloads: ["chat"],
    fields: [system, { ...prompt(about), label: "Input" }, temperature(2), maxTokens("")],
    path: () => "/v1/responses",
    body: (model, { max_tokens, prompt, system, temperature }) =>
      given({ model, instructions: system, input: prompt, temperature, max_output_tokens: max_tokens, store: false }),
    answer: "text"
  },
  {
    name: "generateContent",
    title: "Generate content",
    workloads: ["chat", "images"],
    fields: [
      prompt("A lighthouse at dusk, seen from the sea"),
      { ...stream, initial: false },
      choice("aspectRatio", "Aspect ratio of images", ["1:1", "16:9", "9:16", "4:3"], "16:9")
    ],
    path: (model, { stream }) =>
      `/v1beta/models/${encodeURIComponent(model)}:${
        stream === true ? "streamGenerateContent?alt=sse" : "generateContent"
      }`,
    body: (_, { aspectRatio, prompt }) => ({
      contents: [{ role: "user", parts: [{ text: prompt }] }],
      generationConfig: { responseModalities: ["TEXT", "IMAGE"], imageConfig: { aspectRatio, imageSize: "1K" } }
    }),
    answer: "text"
  },
  {
    name: "completions",
    title: "Completion",
    workloads: ["chat"],
    fields: [prompt("Once upon a time there was a gateway that"), stream, temperature(2), maxTokens(200)],
    path: () => "/v1/completions",
    body: (model, { max_tokens, prompt, stream, temperature }) =>
      given({ model, prompt, max_tokens, stream, temperature }),
    answer: "text"
  },
  {
    name: "responses.input_tokens",
    title: "Count tokens of input",
    workloads: ["chat"],
    fields: [system, { ...prompt(about), label: "Input" }],
    path: () => "/v1/responses/input_tokens",
    body: (model, { prompt, system }) => given({ model, instructions: system, input: prompt }),
    answer: "json"
  },
  {
    name: "messages.count_tokens",
    title: "Count tokens of messages",
    workloads: ["chat"],
    fields: [system, { ...prompt(about), label: "Message" }],
    path: () => "/v1/messages/count_tokens",
    headers: { "vendor-version": "2023-06-01" },
    body: (model, { prompt, system }) => given({ model, system, messages: [{ role: "user", content: prompt }] }),
    answer: "json"
  },
  {
    name: "countTokens",
    title: "Count tokens of content",
    workloads: ["chat"],
    fields: [prompt(about)],
    path: (model) => `/v1beta/models/${model}:countTokens`,
    body: (_model, { prompt }) => ({ contents: [{ role: "user", parts: [{ text: prompt }] }] }),
    answer: "json"
  },
  {
    name: "moderations",
    title: "Moderation",
    workloads: ["chat"],
    fields: [{ ...texts, hint: "One per line. Needs a model for moderation." }],
    path: () => "/v1/moderations",
    body: (model, { input }) => ({ model, input: linesOf(input) }),
    answer: "json"
  },
  {
    name: "responses.compact",
    title: "Compaction",
    workloads: ["chat"],
    fields: [
      {
        name: "input",
        label: "Conversation",
        kind: "area",
        initial: "We met on Monday. The launch moves to the ninth of June. Ada writes the notes. "
          + "Grace looks after the servers and wants two more of them."
      },
      { name: "instructions", label: "Instructions", kind: "text", initial: "", hint: "Optional" }
    ],
    path: () => "/v1/responses/compact",
    body: (model, { input, instructions }) => given({ model, input: [{ role: "user", content: input }], instructions }),
    answer: "json"
  },
  {
    name: "images.generations",
    title: "Image",
    workloads: ["images"],
    fields: [
      prompt("A sailing boat on the sea at sunset"),
      choice("size", "Size", ["1024x1024", "1344x768", "768x1344", "512x512"], "1024x1024"),
      number("n", "Images", 1, { minimum: 1, maximum: 10 }),
      { name: "negative_prompt", label: "Negative prompt", kind: "text", initial: "", hint: "Optional" },
      seed
    ],
    path: () => "/v1/images/generations",
    body: (model, { n, negative_prompt, prompt, seed, size }) =>
      given({ model, prompt, size, n, negative_prompt, seed, response_format: "b64_json" }),
    answer: "pictures"
  },
  {
    name: "images.edits",
    title: "Image edit",
    workloads: ["images"],
    fields: [
      { name: "image", label: "Image", kind: "picture", initial: "" },
      { ...prompt("grayscale"), label: "Instruction", kind: "text" }
    ],
    path: () => "/v1/images/edits",
    body: (model, { image, prompt }) => ({
      model,
      input: { messages: [{ role: "user", content: [{ image }, { text: prompt }] }] }
    }),
    answer: "pictures"
  },
  {
    name: "video.generations",
    title: "Video",
    workloads: ["video"],
    fields: [
      prompt("Waves roll onto a beach in the evening light"),
      number("duration", "Seconds", 2, { minimum: 1, maximum: 20 }),
      choice("size", "Size", ["320x180", "640x360", "360x640", "1280x720"], "320x180"),
      { name: "image", label: "First frame", kind: "picture", initial: "", hint: "Optional" },
      seed
    ],
    path: () => "/v1/video/generations",
    body: (model, { duration, image, prompt, seed, size }) => {
      const [width, height] = String(size).split("x").map(Number)
      return given({ model, prompt, duration, width, height, image, seed })
    },
    answer: "video"
  },
  {
    name: "audio.speech",
    title: "Speech",
    workloads: ["speech"],
    fields: [
      { name: "input", label: "Text", kind: "area", initial: "Hello from your gateway. It is good to be heard." },
      choice("voice", "Voice", ["alloy", "echo", "fable", "onyx", "nova", "shimmer"], "nova"),
      choice("response_format", "Format", ["mp3", "opus", "aac", "flac", "wav", "pcm"], "mp3"),
      number("speed", "Speed", 1, { minimum: 0.25, maximum: 4, step: 0.25 })
    ],
    path: () => "/v1/audio/speech",
    body: (model, values) => given({ model, ...values }),
    answer: "sound"
  },
  {
    name: "audio.transcriptions",
    title: "Transcription",
    workloads: ["speech"],
    fields: [soundFile, { ...text, name: "language", label: "Language", initial: "", hint: "Optional, such as en" }],
    path: () => "/v1/audio/transcriptions",
    body: (model, { file, language }) => given({ model, file, language }),
    answer: "json"
  },
  {
    name: "audio.translations",
    title: "Translation of speech",
    workloads: ["speech"],
    fields: [soundFile],
    path: () => "/v1/audio/translations",
    body: (model, { file }) => ({ model, file }),
    answer: "json"
  },
  embeddings,
  {
    ...embeddings,
    name: "engines.embeddings",
    title: "Embeddings by engine",
    path: (model) => `/v1/engines/${encodeURIComponent(model)}/embeddings`
  },
  {
    name: "embedContent",
    title: "Embed content",
    workloads: ["embeddings"],
    fields: [text, dimensions],
    path: (model) => `/v1beta/models/${encodeURIComponent(model)}:embedContent`,
    body: (_model, { dimensions, text }) => given({ content: { parts: [{ text }] }, outputDimensionality: dimensions }),
    answer: "json"
  },
  {
    name: "batchEmbedContents",
    title: "Embed contents",
    workloads: ["embeddings"],
    fields: [texts, dimensions],
    path: (model) => `/v1beta/models/${encodeURIComponent(model)}:batchEmbedContents`,
    body: (_model, { dimensions, input }) => ({
      requests: linesOf(input).map((text) =>
        given({ content: { parts: [{ text }] }, outputDimensionality: dimensions })
      )
    }),
    answer: "json"
  },
  {
    name: "embed",
    title: "Embed by Cohere's API",
    workloads: ["embeddings"],
    fields: [
      texts,
      dimensions,
      choice("input_type", "Purpose", ["search_document", "search_query"], "search_document")
    ],
    path: () => "/v2/embed",
    body: (model, { dimensions, input, input_type }) =>
      given({ model, texts: linesOf(input), input_type, output_dimension: dimensions }),
    answer: "json"
  },
  {
    name: "rerank",
    title: "Rerank",
    workloads: ["rerank"],
    fields: [
      { name: "query", label: "Query", kind: "text", initial: "Who keeps bees?" },
      {
        name: "documents",
        label: "Documents",
        kind: "lines",
        initial: "A lighthouse keeper lives by the sea.\nThe beekeeper opens her hives in spring.\n"
          + "Bees were kept here long before the road was built.",
        hint: "One per line"
      },
      number("top_n", "Number of results", "", { minimum: 1 })
    ],
    path: () => "/v1/rerank",
    body: (model, { documents, query, top_n }) =>
      given({ model, query, documents: linesOf(documents), top_n, return_documents: true }),
    answer: "ranking"
  }
]
