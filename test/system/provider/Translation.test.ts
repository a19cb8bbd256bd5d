/**
 * Every provider's answer reaches clients of every dialect: recorded answers are cut anywhere, translated, and decoded again
 * as an answer in the client's dialect.
 */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { chatCompletions } from "../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { completions } from "../../../shared/provider/dialects/openai/Completions.ts"
import type { AnswerEncoder, AnswerIdentity } from "../../../shared/provider/dialects/conversation/Dialect.ts"
import { streamGenerateContent } from "../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { messages } from "../../../shared/provider/dialects/anthropic/Messages.ts"
import type { ModelEvent } from "../../../shared/provider/dialects/conversation/ModelEvent.ts"
import { anthropic } from "../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../shared/provider/protocols/gemini/Gemini.ts"
import { isFailure, type Read } from "../../../shared/provider/exchange/AnswerReader.ts"
import { TranslatedAnswer, TranslatedPart } from "../../../shared/provider/exchange/TranslatedAnswer.ts"
import { openAi } from "../../../shared/provider/protocols/openai/OpenAi.ts"
import { dataOf, SseFrames } from "../../../shared/bounds/SseFrames.ts"
import type { Provider } from "../../fixture/gateway/ChatProviders.ts"
import {
  decoderOf,
  endOf,
  errorSample,
  expected,
  type Said,
  saidBy,
  type Sample,
  samples
} from "../../fixture/calls/ChatSamples.ts"
import { cut } from "../../fixture/general/Cut.ts"

const grammars = { openai: openAi.grammar, anthropic: anthropic.grammar, gemini: gemini.grammar }

const identity: AnswerIdentity = {
  id: "0123456789abcdef",
  created: 1_700_000_000,
  model: "alias",
  fingerprint: undefined
}
const user = [{ role: "user" as const, content: "How do bees dance?" }]

/** Each dialect's encoder, and the provider whose decoder reads the result. */
const clients: Readonly<Record<string, { readonly reader: Provider; readonly encoder: () => AnswerEncoder }>> = {
  "chat completions": {
    reader: "openai",
    encoder: () =>
      chatCompletions.encoder({ model: "alias", messages: user, stream_options: { include_usage: true } }, identity)
  },
  messages: {
    reader: "anthropic",
    encoder: () => messages.encoder({ model: "alias", max_tokens: 100, messages: user }, identity)
  },
  generateContent: {
    reader: "gemini",
    encoder: () => streamGenerateContent.encoder({ contents: [{ parts: [{ text: "How?" }] }] }, identity)
  }
}

const answered = (sample: Sample, encoder: AnswerEncoder, streams: boolean) => {
  const answer = new TranslatedAnswer({ encoder, streams, headers: {}, exchanges: 1, isTextRequest: true })
  return new TranslatedPart({
    answer,
    decoder: decoderOf[sample.provider](),
    grammar: grammars[sample.provider],
    firstChoice: 0,
    provider: "p",
    secrets: []
  })
}

/** For samples without usage. */
const estimate = { inputTokens: 0, outputTokens: 0 }

const bytesOf = (read: Read): Buffer => {
  if (isFailure(read)) return assert.fail(read.message)
  return Buffer.concat(typeof read === "function" ? read(estimate) : read)
}

const pushed = (part: TranslatedPart, chunk: Uint8Array): ReadonlyArray<Uint8Array> => {
  const pieces = part.push(chunk)
  assert.isUndefined(part.failure())
  return pieces
}

/** The bytes that a client gets for a streamed answer cut into these sizes. */
const streamedTo = (sample: Sample, encoder: AnswerEncoder, sizes: ReadonlyArray<number>): Buffer => {
  const part = answered(sample, encoder, true)
  return Buffer.concat([...cut(sample.sse, sizes).flatMap((chunk) => pushed(part, chunk)), bytesOf(part.end())])
}

/** Decodes the frames that a client gets. */
const readStream = (bytes: Uint8Array, provider: Provider): Said => {
  const decoder = decoderOf[provider]()
  const frames = new SseFrames()
  const events: Array<ModelEvent> = []
  for (const frame of frames.push(bytes)) {
    const data = Buffer.from(dataOf(frame) ?? []).toString()
    if (data !== "" && data !== "[DONE]") events.push(...decoder.frame(JSON.parse(data)) ?? assert.fail(data))
  }
  assert.strictEqual(frames.restBytes, 0)
  assert.isTrue(decoder.isComplete)
  return saidBy([...events, ...decoder.last()], decoder.usage)
}

const readWhole = (bytes: Buffer, provider: Provider): Said => {
  const decoder = decoderOf[provider]()
  const events = decoder.whole(JSON.parse(bytes.toString())) ?? assert.fail(bytes.toString())
  return saidBy([...events, ...decoder.last()], decoder.usage)
}

/** The parts of an answer that each dialect can express. */
const placed = (said: Said, client: string): Said => {
  const { cacheWriteTokens: _, ...usage } = said.usage
  return client === "generateContent" ? { ...said, usage } : client === "messages" ? { ...said, media: [] } : said
}

const named = samples.map((sample) => [`${sample.provider}/${sample.name}`, sample] as const)

describe("a recorded answer is decoded to its content", () => {
  it.each(named)("%s", (_, sample) => {
    assert.deepStrictEqual(readWhole(sample.json, sample.provider), expected(sample, "json"))
    assert.deepStrictEqual(readStream(sample.sse, sample.provider), expected(sample, "sse"))
  })
})

describe.each(Object.keys(clients))("%s: a recorded answer has the same content", (client) => {
  const { encoder, reader } = clients[client]!

  it.each(named)("%s, as JSON and as a stream", (_, sample) => {
    const body = bytesOf(answered(sample, encoder(), false).whole(sample.json))
    assert.deepStrictEqual(readWhole(body, reader), placed(expected(sample, "json"), client))
    const frames = streamedTo(sample, encoder(), [])
    assert.deepStrictEqual(readStream(frames, reader), placed(expected(sample, "sse"), client))
    // whichever form the provider chose, the client gets the one it asked for
    const folded = answered(sample, encoder(), false)
    for (const chunk of cut(sample.sse, [50])) pushed(folded, chunk)
    assert.deepStrictEqual(readWhole(bytesOf(folded.end()), reader), placed(expected(sample, "sse"), client))
    const unfolded = bytesOf(answered(sample, encoder(), true).whole(sample.json))
    assert.deepStrictEqual(readStream(unfolded, reader), placed(expected(sample, "json"), client))
  })

  it.prop(
    "wherever the provider's bytes are cut",
    [
      Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 90 }))), {
        minLength: 1,
        maxLength: 8
      }),
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: samples.length - 1 })))
    ],
    ([sizes, index]) => {
      const sample = samples[index]!
      const said = readStream(streamedTo(sample, encoder(), sizes), reader)
      assert.deepStrictEqual(said, placed(expected(sample, "sse"), client))
    },
    { arbitrary: { runs: 200, seed: 1 } }
  )
})

describe("completions", () => {
  it.each(named)("have the text of %s", (_, sample) => {
    const encoder = () => completions.encoder({ model: "alias", prompt: "How?" }, identity)
    const { choices } = JSON.parse(bytesOf(answered(sample, encoder(), false).whole(sample.json)).toString()) as {
      readonly choices: ReadonlyArray<{ readonly text: string; readonly finish_reason: string }>
    }
    const { finish, text } = expected(sample, "json")
    assert.deepStrictEqual(choices.map(({ finish_reason, text }) => ({ finish_reason, text })), [
      { text, finish_reason: finish === "tool_calls" ? "stop" : finish }
    ])
  })
})

it("a choice keeps its number in a whole chat completion, whatever order the provider uses", () => {
  const sample: Sample = { provider: "openai", name: "numbers", sse: Buffer.of(), json: Buffer.of() }
  const body = bytesOf(
    answered(sample, clients["chat completions"]!.encoder(), false).whole(Buffer.from(JSON.stringify({
      choices: [4_294_967_294, 1].map((index) => ({
        index,
        message: { role: "assistant", content: "a" },
        finish_reason: "stop"
      }))
    })))
  )
  const { choices } = JSON.parse(body.toString()) as { readonly choices: ReadonlyArray<{ readonly index: number }> }
  assert.deepStrictEqual(choices.map(({ index }) => index), [1, 4_294_967_294])
})

describe("an incomplete or odd stream", () => {
  const failureOf = (sample: Sample, bytes: Uint8Array) => {
    const part = answered(sample, clients["messages"]!.encoder(), true)
    part.push(bytes)
    return part.failure() ?? part.end()
  }

  it.each(named)("%s, broken off, is an error", (_, sample) => {
    const failure = failureOf(sample, sample.sse.subarray(0, endOf(sample)))
    assert.deepInclude(failure, { _tag: "ProviderFailed", reason: "cut", provider: "p" })
  })

  it.each(
    [
      ["openai", { _tag: "ProviderFailed", reason: "error", status: 500 }],
      ["anthropic", { _tag: "ProviderFailed", reason: "error", status: 529 }],
      ["gemini", { _tag: "ProviderFailed", reason: "error", status: 503 }]
    ] as const
  )("%s: keeps the kind of an error in the middle", (provider, failure) => {
    const sample = errorSample(provider)
    assert.deepInclude(failureOf(sample, sample.sse), failure)
  })

  it.each(
    [
      ["openai", (index: number, finish_reason: string | null) => ({
        choices: [{ index, delta: { content: "a" }, finish_reason }]
      })],
      ["gemini", (index: number, finish: string | null) => ({
        candidates: [{
          index,
          content: { parts: [{ text: "a" }] },
          ...(finish === null ? {} : { finishReason: finish })
        }]
      })]
    ] as const
  )("%s: is an error if one of two choices ended and the other broke off", (provider, piece) => {
    const sample = samples.find((sample) => sample.provider === provider)!
    const stream = (...pieces: ReadonlyArray<object>) =>
      Buffer.from(pieces.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(""))
    const cut = [piece(0, null), piece(1, null), piece(0, "stop")]
    assert.deepInclude(failureOf(sample, stream(...cut)), { _tag: "ProviderFailed", reason: "cut" })
    assert.isFalse(isFailure(failureOf(sample, stream(...cut, piece(1, "length")))))
  })

  it("is complete despite frames with empty data", () => {
    const [sample] = samples
    const empty = Buffer.from("data:\n\nevent: ping\ndata: \n\n")
    assert.isFalse(isFailure(failureOf(sample!, Buffer.concat([empty, sample!.sse]))))
  })

  it("is malformed if it is too large to buffer for a client that wants no stream", () => {
    const [sample] = samples
    const frame = Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { x: "x".repeat(1 << 22) } }] })}\n\n`
    )
    const failed = (streams: boolean) => {
      const part = answered(sample!, clients["messages"]!.encoder(), streams)
      for (let pushed = 0; pushed < 64 << 20; pushed += frame.length) part.push(frame)
      return part.failure()
    }
    assert.deepInclude(failed(false), { _tag: "ProviderFailed", reason: "malformed" })
    assert.isUndefined(failed(true))
  })

  it("is malformed if its data cannot be parsed", () => {
    const [sample] = samples
    assert.deepInclude(failureOf(sample!, Buffer.from("data: <html>\n\n")), { reason: "malformed" })
    assert.deepInclude(failureOf(sample!, Buffer.from("data: 5\n\n")), { reason: "malformed" })
  })
})

describe("deviations of OpenAI-compatible servers", () => {
  const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }
  /** The content of these deltas, checked to be the same as in one whole message. */
  const streamed = (deltas: ReadonlyArray<object>): Said => {
    const decoder = decoderOf.openai()
    const chunks = [
      ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage }
    ]
    const events = chunks.flatMap((chunk) => decoder.frame(chunk) ?? assert.fail(JSON.stringify(chunk)))
    return saidBy([...events, ...decoder.last()], decoder.usage)
  }
  const whole = (message: object): Said =>
    readWhole(Buffer.from(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }], usage })), "openai")

  const calls = [{ name: "f", arguments: { a: 1 } }, { name: "g", arguments: { b: 2 } }]

  it("calls with one index are several if their ids differ", () => {
    const first = { index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{\"a\":1}" } }
    const second = { index: 0, id: "c2", type: "function", function: { name: "g", arguments: "{\"b\":2}" } }
    assert.deepStrictEqual(streamed([{ tool_calls: [first] }, { tool_calls: [second] }]).calls, calls)
    assert.deepStrictEqual(streamed([{ tool_calls: [first, second] }]).calls, calls)
    assert.deepStrictEqual(whole({ tool_calls: [first, second] }).calls, calls)
  })

  it("calls continue after their name and id are repeated", () => {
    const begun = { index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{\"a\"" } }
    const gone = { function: { arguments: ":1}" } }
    const next = { index: 1, id: "c2", type: "function", function: { name: "g", arguments: "{\"b\":2}" } }
    const said = (...more: ReadonlyArray<object>) =>
      streamed([{ tool_calls: [begun] }, ...more.map((call) => ({ tool_calls: [call] })), { tool_calls: [next] }]).calls
    assert.deepStrictEqual(said({ ...gone, index: 0, id: "c1" }), calls)
    assert.deepStrictEqual(said({ index: 0, id: "", function: { ...gone.function, name: "" } }), calls)
    assert.deepStrictEqual(said({ index: 0, id: "c1", function: { ...gone.function, name: "f" } }), calls)
    const { index: _, ...unnumbered } = begun
    const after = [{ id: null, function: { ...gone.function, name: null } }, next]
    assert.deepStrictEqual(
      streamed([{ tool_calls: [unnumbered] }, ...after.map((call) => ({ tool_calls: [call] }))]).calls,
      calls
    )
  })

  it("finished calls are named once more, without new content", () => {
    const numbered = calls.map(({ arguments: json, name }, index) => ({
      index,
      id: `c${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(json) }
    }))
    const over = { index: 0, function: { arguments: "" } }
    assert.deepStrictEqual(streamed([{ tool_calls: numbered }, { tool_calls: [over] }]).calls, calls)
  })

  it("arguments are an object", () => {
    const tool_calls = calls.map((call, index) => ({ id: `c${index}`, type: "function", function: call }))
    assert.deepStrictEqual(whole({ content: null, tool_calls }).calls, calls)
  })

  it("content is a list of reasoning and text", () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "Hm, " }, { type: "text", text: "bees." }] },
      { type: "text", text: "They " },
      { type: "text", text: "dance." }
    ]
    const said = { text: "They dance.", reasoning: "Hm, bees." }
    assert.deepInclude(whole({ content }), said)
    assert.deepInclude(streamed(content.map((part) => ({ content: [part] }))), said)
  })

  it("one field for reasoning is empty, and another is not", () => {
    assert.deepInclude(streamed([{ reasoning_content: "", reasoning: "Hm." }]), { reasoning: "Hm." })
  })
})
