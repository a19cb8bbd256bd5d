/** A client of the provider's own dialect gets the provider's bytes, except for the model's alias. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { anthropic } from "../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../shared/provider/protocols/gemini/Gemini.ts"
import { isFailure, type Read } from "../../../shared/provider/exchange/AnswerReader.ts"
import { PassingAnswer } from "../../../shared/provider/exchange/PassingAnswer.ts"
import { openAi } from "../../../shared/provider/protocols/openai/OpenAi.ts"
import { type Provider, providers } from "../../fixture/gateway/ChatProviders.ts"
import { endOf, errorSample, expected, kinds, type Sample, samples } from "../../fixture/calls/ChatSamples.ts"
import { cut } from "../../fixture/general/Cut.ts"

const grammars = { openai: openAi.grammar, anthropic: anthropic.grammar, gemini: gemini.grammar }

const open = (provider: Provider, model: string, alias = model, showUsage = true) =>
  new PassingAnswer({
    call: {
      operation: chatCompletions,
      model: alias,
      answersAs: alias,
      workload: "chat",
      tenant: "t",
      contentType: "application/json",
      body: Buffer.from("{}"),
      endpoint: { name: "p", provider: { protocol: provider }, model }
    },
    grammar: grammars[provider],
    showUsage,
    secrets: ["s3cret"]
  })

/** For samples without usage. */
const estimate = { inputTokens: 1, outputTokens: 1, estimatedTokens: 2 }

const textOf = (read: Read): string => {
  if (isFailure(read)) return assert.fail(read.message)
  return Buffer.concat(typeof read === "function" ? read(estimate) : read).toString()
}

const relayed = (answer: PassingAnswer, bytes: Uint8Array, sizes: ReadonlyArray<number>): string => {
  const pieces: Array<Uint8Array> = []
  for (const chunk of cut(bytes, sizes)) {
    // joined at the end, because a character may span two pieces
    pieces.push(...answer.push(chunk))
    assert.isUndefined(answer.failure())
  }
  return Buffer.concat(pieces).toString() + textOf(answer.end())
}

const metered = (answer: PassingAnswer) =>
  Object.fromEntries(
    Object.entries(answer.usage() ?? {}).filter(([unit, tokens]) => tokens !== 0 && !kinds.test(unit))
  )

const sizes = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 200 }))), {
  minLength: 1,
  maxLength: 8
})

// Random streams

/** Text with everything that resembles syntax. */
const anyText = Arbitrary.schema(Schema.Union([
  Schema.String,
  Schema.Literals([
    "\"usage\"",
    "\"error\":{}",
    "\"model\":\"upstream\"",
    "[DONE]",
    "\n\ndata: {}\n\n",
    "漢字 🙂",
    "\\\""
  ])
])).pipe(Arbitrary.map((text) => text.toWellFormed()))

/** The ways a provider may write the same frame. */
const anyStyle = Arbitrary.schema(Schema.Struct({
  end: Schema.Literals(["\n", "\r\n"]),
  space: Schema.Literals(["", " "]),
  indent: Schema.Literals([0, 1]),
  before: Schema.Literals(["", "", ": comment\n\n", "id: 7\n"])
}))

const anyDelta = Arbitrary.all({ text: anyText, style: anyStyle })

type Style = { readonly end: string; readonly space: string; readonly indent: number; readonly before: string }

const frame = (data: unknown, { before, end, indent, space }: Style, name?: string): string => {
  // white space within JSON, but no line break
  const json = JSON.stringify(data, null, indent).replaceAll(/\n\s*/g, " ")
  return `${before}${name === undefined ? "" : `event: ${name}${end}`}data:${space}${json}${end}${end}`
}

const plain: Style = { end: "\n", space: " ", indent: 0, before: "" }

/** A provider's whole stream of these texts, with this name wherever it names its model. */
const streamOf: {
  readonly [P in Provider]: (
    deltas: ReadonlyArray<{ readonly text: string; readonly style: Style }>,
    model: string
  ) => string
} = {
  openai: (deltas, model) =>
    deltas.map(({ style, text }) =>
      frame({ id: "c", model, choices: [{ index: 0, delta: { content: text }, finish_reason: null }] }, style)
    ).join("") +
    frame({ model, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, plain) +
    frame({ model, choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } }, plain) +
    "data: [DONE]\n\n",
  anthropic: (deltas, model) =>
    frame({ type: "message_start", message: { id: "m", model, usage: { input_tokens: 3, output_tokens: 1 } } }, plain) +
    deltas.map(({ style, text }) =>
      frame(
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
        style,
        "content_block_delta"
      )
    ).join("") +
    frame({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }, plain) +
    frame({ type: "message_stop" }, plain),
  gemini: (deltas, modelVersion) =>
    deltas.map(({ style, text }) =>
      frame({
        candidates: [{ content: { parts: [{ text }] } }],
        usageMetadata: { promptTokenCount: 3 },
        modelVersion
      }, style)
    ).join("") +
    frame({
      candidates: [{ finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
      modelVersion
    }, plain)
}

describe.each(providers)("%s: random streams of a few thousand frames, cut anywhere,", (provider) => {
  for (const alias of ["upstream", "my \"alias\" 🙂"]) {
    it.prop(
      `are unchanged ${alias === "upstream" ? "to the byte" : "except for the model's name"}`,
      [Arbitrary.array(anyDelta, { minLength: 5, maxLength: 40 }), sizes],
      ([deltas, sizes]) => {
        const answer = open(provider, "upstream", alias)
        const passed = relayed(answer, Buffer.from(streamOf[provider](deltas, "upstream")), sizes)
        // the provider's white space around the name is kept
        assert.strictEqual(passed, streamOf[provider](deltas, alias))
        assert.deepInclude(answer.usage(), { inputTokens: 3, outputTokens: 2 })
      },
      { arbitrary: { runs: 150, seed: 7 } }
    )
  }
})

// Recorded answers

const named = samples.map((sample) => [`${sample.provider}/${sample.name}`, sample] as const)

/** Whether its stream reports usage: otherwise a client that asked for it would get an estimate. */
const hasUsage = (sample: Sample): boolean => expected(sample, "sse").usage.inputTokens !== undefined

describe("a recorded answer", () => {
  it.each(named)("%s reaches the client unchanged, and is metered", (_, sample) => {
    const stream = open(sample.provider, "m", "m", hasUsage(sample))
    assert.strictEqual(relayed(stream, sample.sse, [61]), sample.sse.toString())
    assert.deepStrictEqual(metered(stream), expected(sample, "sse").usage)
    const whole = open(sample.provider, "m")
    assert.strictEqual(textOf(whole.whole(sample.json)), sample.json.toString())
    assert.deepStrictEqual(metered(whole), expected(sample, "json").usage)
  })

  it.each(named)("%s has the alias in every place of the provider's name", (_, sample) => {
    const names = [...sample.sse.toString().matchAll(/"model(?:Version)?": ?"([^"]*)"/g)].map(([name]) => name)
    const renamed = relayed(open(sample.provider, "m", "alias", hasUsage(sample)), sample.sse, [61])
    const expected = names.reduce(
      (text, name) => text.replaceAll(name, name.replace(/"[^"]*"$/, "\"alias\"")),
      sample.sse.toString()
    )
    assert.isAbove(names.length, 0)
    assert.strictEqual(renamed, expected)
  })

  it.each(named)("%s, broken off, is an error", (_, sample) => {
    const answer = open(sample.provider, "m")
    answer.push(sample.sse.subarray(0, endOf(sample)))
    assert.isUndefined(answer.failure())
    assert.deepInclude(answer.end(), { _tag: "ProviderFailed", reason: "cut" })
  })
})

describe("an answer that is relayed as it arrives", () => {
  it.each(named)("%s has the alias in the same places as a whole answer", (_, sample) => {
    const whole = textOf(open(sample.provider, "m", "alias").whole(sample.json))
    for (const size of [1, 7, 64, 1_000]) {
      const answer = open(sample.provider, "m", "alias")
      answer.holdBytes("application/json")
      const pieces = cut(sample.json, [size]).flatMap((piece) => answer.pass(piece))
      assert.isUndefined(answer.endPassing())
      assert.strictEqual(Buffer.concat(pieces).toString(), whole)
      assert.deepStrictEqual(metered(answer), expected(sample, "json").usage)
    }
  })
})

describe("an error that the provider reports", () => {
  it.each(
    [
      ["openai", { _tag: "ProviderFailed", reason: "error", status: 500 }],
      ["anthropic", { _tag: "ProviderFailed", reason: "error", status: 529 }],
      ["gemini", { _tag: "ProviderFailed", reason: "error", status: 503 }]
    ] as const
  )("%s: in the middle of a stream ends it", (provider, failure) => {
    const answer = open(provider, "m")
    answer.push(errorSample(provider).sse)
    assert.deepInclude(answer.failure(), failure)
  })

  it("in place of an answer keeps what the client may see of it", () => {
    const body = (error: object) => Buffer.from(JSON.stringify({ type: "error", error }))
    assert.deepInclude(open("anthropic", "m").whole(body({ type: "rate_limit_error", message: "Slow down" })), {
      _tag: "ProviderRateLimited"
    })
    const rejected = open("anthropic", "m").whole(
      body({ type: "invalid_request_error", message: "max_tokens: too many for s3cret" })
    )
    assert.deepInclude(rejected, {
      _tag: "ProviderRejected",
      status: 400,
      message: "max_tokens: too many for [redacted]",
      param: "max_tokens"
    })
  })
})
