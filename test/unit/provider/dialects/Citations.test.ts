/** The sources of an answer's text: from a provider of every dialect to a client of every dialect, whole and streamed. */
import { assert, describe, it } from "@effect/vitest"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { cohereProvider } from "../../../../shared/provider/dialects/cohere/CohereProvider.ts"
import type {
  AnswerDecoder,
  AnswerEncoder,
  AnswerIdentity
} from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import type { ModelEvent } from "../../../../shared/provider/dialects/conversation/ModelEvent.ts"
import { Losses } from "../../../../shared/provider/dialects/conversation/Losses.ts"
import { toRelayed } from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { responses } from "../../../../shared/provider/dialects/responses/Responses.ts"
import { responsesProvider } from "../../../../shared/provider/dialects/responses/ResponsesProvider.ts"

const [first, second] = ["Bees dance 🐝. ", "They point."]
const text = first + second
const start = first.length
const end = text.length
const page = { url: "https://bees.example/dance", title: "How bees dance" }

// Providers

const annotation = { type: "url_citation", start_index: start, end_index: end, ...page }
const nested = { type: "url_citation", url_citation: { start_index: start, end_index: end, ...page } }
const part = { type: "output_text", text, annotations: [annotation], logprobs: [] }
const message = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [part] }
const location = { type: "web_search_result_location", ...page, cited_text: "Bees point.", encrypted_index: "RXhh" }
const document = { type: "char_location", document_index: 0, document_title: "Mine", cited_text: "Bees" }
const grounding = {
  groundingChunks: [{ web: { uri: page.url, title: page.title } }],
  groundingSupports: [{
    segment: { startIndex: Buffer.byteLength(first), endIndex: Buffer.byteLength(text), text: second },
    groundingChunkIndices: [0]
  }]
}
const source = { type: "tool", id: "search:0", tool_output: page }
const own = { type: "document", id: "doc:0", document: { id: "doc:0", text: "Bees" } }
/** Counts within the second block, or the only one. */
const cited = (block: 0 | 1) => ({
  ...(block === 1 ? { start: 0, end: second.length } : { start, end }),
  ...{ text: second, content_index: block, type: "TEXT_CONTENT", sources: [own, source] }
})
const delta = (content: object) => ({ message: { content } })
const candidate = (text: string, more: object = {}) => ({
  index: 0,
  content: { role: "model", parts: [{ text }] },
  ...more
})

interface Provider {
  readonly decoder: () => AnswerDecoder
  readonly whole: unknown
  readonly frames: ReadonlyArray<unknown>
}

const providers: Readonly<Record<string, Provider>> = {
  "chat completions": {
    decoder: chatCompletionsProvider.decoder,
    whole: { choices: [{ index: 0, message: { content: text, annotations: [nested] }, finish_reason: "stop" }] },
    frames: [
      { choices: [{ index: 0, delta: { content: first } }] },
      { choices: [{ index: 0, delta: { content: second } }] },
      { choices: [{ index: 0, delta: { annotations: [nested] }, finish_reason: "stop" }] }
    ]
  },
  "responses": {
    decoder: responsesProvider.decoder,
    whole: { status: "completed", output: [message] },
    frames: [
      { type: "response.output_item.added", output_index: 0, item: { ...message, content: [] } },
      { type: "response.output_text.delta", output_index: 0, delta: first },
      { type: "response.output_text.delta", output_index: 0, delta: second },
      { type: "response.output_text.annotation.added", output_index: 0, annotation_index: 0, annotation },
      { type: "response.output_item.done", output_index: 0, item: message },
      { type: "response.completed", response: { status: "completed", output: [message] } }
    ]
  },
  "messages": {
    decoder: messagesProvider.decoder,
    whole: {
      content: [{ type: "text", text: first }, { type: "text", text: second, citations: [location, document] }],
      stop_reason: "end_turn"
    },
    frames: [
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: first } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "", citations: [] } },
      { type: "content_block_delta", index: 1, delta: { type: "citations_delta", citation: location } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: second } },
      { type: "content_block_delta", index: 1, delta: { type: "citations_delta", citation: document } },
      { type: "content_block_stop", index: 1 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" }
    ]
  },
  "Cohere": {
    decoder: cohereProvider.decoder,
    whole: {
      finish_reason: "COMPLETE",
      message: { content: [{ type: "text", text: first }, { type: "text", text: second }], citations: [cited(1)] }
    },
    frames: [
      { type: "message-start", delta: { message: { role: "assistant" } } },
      { type: "content-start", index: 0, delta: delta({ type: "text", text: "" }) },
      { type: "content-delta", index: 0, delta: delta({ text: first }) },
      { type: "content-delta", index: 0, delta: delta({ text: second }) },
      { type: "citation-start", index: 0, delta: { message: { citations: cited(0) } } },
      { type: "citation-end", index: 0 },
      { type: "content-end", index: 0 },
      { type: "message-end", delta: { finish_reason: "COMPLETE" } }
    ]
  },
  "generateContent": {
    decoder: generateContentProvider.decoder,
    whole: { candidates: [candidate(text, { finishReason: "STOP", groundingMetadata: grounding })] },
    frames: [
      { candidates: [candidate(first)] },
      { candidates: [candidate(second, { groundingMetadata: grounding })] },
      { candidates: [candidate("", { finishReason: "STOP" })] }
    ]
  }
}

const decode = ({ decoder: make, frames, whole }: Provider, streams: boolean): ReadonlyArray<ModelEvent> => {
  const decoder = make()
  const events = streams ? frames.flatMap((each) => decoder.frame(each) ?? []) : decoder.whole(whole) ?? []
  return [...events, ...decoder.last()]
}

// Clients

/** A source, with the part of the text that it supports if the dialect says so. */
interface Source {
  readonly url: string
  readonly title: string
  readonly supports?: string | undefined
}

interface Located {
  readonly url: string
  readonly title: string
}

interface UrlCitation extends Located {
  readonly start_index: number
  readonly end_index: number
}

interface Message {
  readonly annotations?: ReadonlyArray<{ readonly url_citation: UrlCitation }>
}

interface Candidate {
  readonly groundingMetadata?: {
    readonly groundingChunks: ReadonlyArray<{ readonly web: { readonly uri: string; readonly title: string } }>
    readonly groundingSupports: ReadonlyArray<{
      readonly segment: { readonly startIndex: number; readonly endIndex: number }
      readonly groundingChunkIndices: ReadonlyArray<number>
    }>
  }
}

interface Output {
  readonly output: ReadonlyArray<
    { readonly content: ReadonlyArray<{ readonly annotations: ReadonlyArray<UrlCitation> }> }
  >
}

/** The fields of all dialects' answers and events that these tests look at. */
interface Answered extends Output {
  readonly type?: string
  readonly choices?: ReadonlyArray<{ readonly message: Message; readonly delta: Message }>
  readonly content: ReadonlyArray<{ readonly citations: ReadonlyArray<Located> }>
  readonly delta?: { readonly type: string; readonly citation: Located }
  readonly annotation: UrlCitation
  readonly response: Output
  readonly candidates: ReadonlyArray<Candidate>
}

interface Client {
  readonly encoder: (identity: AnswerIdentity) => AnswerEncoder
  readonly inBody: (body: Answered) => ReadonlyArray<Source>
  readonly inFrames: (frames: ReadonlyArray<Answered>) => ReadonlyArray<Source>
}

const ofUrlCitation = ({ end_index, start_index, title, url }: UrlCitation): Source => ({
  url,
  title,
  supports: text.slice(start_index, end_index)
})
const ofMessage = (message: Message | undefined): ReadonlyArray<Source> =>
  (message?.annotations ?? []).map((one) => ofUrlCitation(one.url_citation))
const ofLocation = ({ title, url }: Located): Source => ({ title, url, supports: second })
const ofCandidate = (candidate: Candidate | undefined): ReadonlyArray<Source> => {
  const { groundingChunks = [], groundingSupports = [] } = candidate?.groundingMetadata ?? {}
  return groundingSupports.map(({ groundingChunkIndices: [index = -1], segment }) => ({
    url: groundingChunks[index]?.web.uri ?? "",
    title: groundingChunks[index]?.web.title ?? "",
    supports: Buffer.from(text).subarray(segment.startIndex, segment.endIndex).toString()
  }))
}
const annotationsIn = ({ output }: Output) => output[0]?.content[0]?.annotations ?? []

const clients: Readonly<Record<string, Client>> = {
  "chat completions": {
    encoder: (identity) =>
      chatCompletions.encoder({ model: "m", messages: [{ role: "user", content: "?" }] }, identity),
    inBody: ({ choices }) => ofMessage(choices?.[0]?.message),
    inFrames: (frames) => frames.flatMap(({ choices }) => ofMessage(choices?.[0]?.delta))
  },
  "responses": {
    encoder: (identity) => responses.encoder({ model: "m", input: "?" }, identity),
    inBody: (body) => annotationsIn(body).map(ofUrlCitation),
    inFrames: (frames) => {
      const added = frames.flatMap(({ annotation, type }) =>
        type === "response.output_text.annotation.added" ? [annotation] : []
      )
      assert.deepStrictEqual(
        added,
        frames.flatMap(({ response, type }) => type === "response.completed" ? annotationsIn(response) : [])
      )
      return added.map(ofUrlCitation)
    }
  },
  "messages": {
    encoder: (identity) => messages.encoder({ model: "m", max_tokens: 9, messages: [] }, identity),
    inBody: ({ content }) => content.flatMap(({ citations }) => citations.map(ofLocation)),
    inFrames: (frames) =>
      frames.flatMap(({ delta }) => delta?.type === "citations_delta" ? [ofLocation(delta.citation)] : [])
  },
  "generateContent": {
    encoder: (identity) => generateContent.encoder({ contents: [] }, identity),
    inBody: ({ candidates }) => ofCandidate(candidates[0]),
    inFrames: (frames) => frames.flatMap(({ candidates }) => ofCandidate(candidates[0]))
  }
}

const identity = { id: "0".repeat(32), created: 1, model: "m", fingerprint: undefined }

const encode = (client: Client, events: ReadonlyArray<ModelEvent>) => {
  const encoder = client.encoder(identity)
  const frames = events.map((event) => encoder.frames(event)).join("") + encoder.lastFrames()
  const data = frames.split("\n").flatMap((line) =>
    line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Answered] : []
  )
  return { streamed: client.inFrames(data), whole: client.inBody(client.encoder(identity).body(events) as Answered) }
}

describe.each(Object.entries(providers))("the source that a provider of %s names", (_, provider) => {
  describe.each(Object.entries(clients))("reaches a client of %s", (_, client) => {
    it.each([true, false])("from a stream: %s", (streams) => {
      const source = { ...page, supports: second }
      assert.deepStrictEqual(encode(client, decode(provider, streams)), { streamed: [source], whole: [source] })
    })
  })
})

describe("a source", () => {
  it("without a place in the text is cited at its end", () => {
    const groundingMetadata = { groundingChunks: grounding.groundingChunks }
    const whole = { candidates: [candidate(text, { finishReason: "STOP", groundingMetadata })] }
    const events = decode({ ...providers["generateContent"]!, whole }, false)
    assert.deepStrictEqual(encode(clients["responses"]!, events).whole, [{ ...page, supports: "" }])
  })

  it("is not repeated without a limit, however many segments it supports", () => {
    const url = `https://bees.example/${"b".repeat(10_000)}`
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: url, title: "" } }, { web: { uri: page.url, title: "" } }],
      groundingSupports: Array.from({ length: 2_000 }, (_, at) => ({
        segment: { startIndex: at, endIndex: at + 1 },
        groundingChunkIndices: [0]
      }))
    }
    const whole = { candidates: [candidate("b".repeat(2_000), { finishReason: "STOP", groundingMetadata })] }
    const events = decode({ ...providers["generateContent"]!, whole }, false)
    const cited = events.flatMap((event) => event.type === "citation" ? [event.citation.url] : [])
    assert.lengthOf(cited.filter((each) => each === url), 419)
    assert.strictEqual(cited.at(-1), page.url)
  })

  it("of a large text keeps its place, but not all segments repeat their text", () => {
    const long = "b".repeat(10_000)
    const annotations = Array.from(
      { length: 2_000 },
      () => ({ ...nested.url_citation, start_index: 0, end_index: 10_000 })
    )
    const message = { content: long, annotations: annotations.map((url_citation) => ({ url_citation })) }
    const whole = { choices: [{ index: 0, message, finish_reason: "stop" }] }
    const events = decode({ ...providers["chat completions"]!, whole }, false)
    const body = clients["generateContent"]!.encoder(identity).body(events) as Answered
    const segments = body.candidates[0]!.groundingMetadata!.groundingSupports.map(({ segment }) => segment)
    assert.lengthOf(segments, 2_000)
    assert.lengthOf(segments.filter((segment) => "text" in segment), 419)
  })

  it("of another provider is removed from a conversation that is relayed to Anthropic", () => {
    const body = clients["messages"]!.encoder(identity).body(decode(providers["responses"]!, false)) as Answered
    const history = [{ role: "assistant", content: body.content }]
    const losses = new Losses("ordinary", {})
    assert.deepStrictEqual(toRelayed(history, "messages", "anthropic", { account: "0123456789ab", losses }), [{
      role: "assistant",
      content: [{ type: "text", text, citations: [] }]
    }])
    assert.deepStrictEqual(losses.warnings, ["messages[0].content[0].citations[0] comes from another provider"])
  })
})
