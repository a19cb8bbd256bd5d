/** A relayed chat completion stream is unchanged except for the model's alias; its usage is metered and its end detected. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../../shared/provider/protocols/gemini/Gemini.ts"
import { PassingStream, type PassingStreamOptions } from "../../../../shared/provider/exchange/PassingStream.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import { maxFrameBytes } from "../../../../shared/bounds/SseFrames.ts"

const frame = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`
const delta = (content: string): string =>
  frame({ id: "c1", object: "chat.completion.chunk", model: "upstream", choices: [{ index: 0, delta: { content } }] })
const finish = frame({ id: "c1", model: "upstream", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })
const reported = {
  prompt_tokens: 9,
  completion_tokens: 4,
  total_tokens: 13,
  prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 1 }
}
const usage = frame({ id: "c1", model: "upstream", choices: [], usage: reported })
const metered = { inputTokens: 9, outputTokens: 4, cachedTokens: 3, reasoningTokens: 1, inputAudioTokens: 0 }
const done = "data: [DONE]\n\n"

const open = (options: Partial<PassingStreamOptions> = {}) =>
  new PassingStream({ grammar: openAi.grammar, showUsage: false, alias: undefined, ...options })

/** What the client gets of the provider's text. */
const relay = (stream: PassingStream, text: string | Uint8Array): string => {
  const passed = stream.push(Buffer.from(text))
  assert.isUndefined(stream.failure)
  return Buffer.concat(passed).toString()
}

describe("a relayed stream", () => {
  it("passes every byte, in the provider's own form", () => {
    const text = [
      ": keep-alive\n\n",
      "data:\n\n",
      "event: message\r\nid: 7\r\ndata:{ \"model\" : \"upstream\", \"choices\":[],\"x\":1.0 }\r\n\r\n",
      delta("é 🙂"),
      "data: {\"choices\":[],\ndata: \"unknown\":true}\n\n",
      finish,
      done
    ]
    assert.strictEqual(relay(open(), text.join("")), text.join(""))
  })

  it.prop(
    "is the same wherever the provider's bytes are split",
    [Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 80 }))), {
      minLength: 1
    })],
    ([sizes]) => {
      const bytes = Buffer.from([": hi\n\n", delta("é 🙂"), delta("b"), finish, usage, done].join(""))
      const stream = open({ alias: "alias" })
      let passed = ""
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1
        passed += relay(stream, bytes.subarray(at, at + size))
        at += size
      }
      const expected = [": hi\n\n", delta("é 🙂"), delta("b"), finish, done].join("")
      assert.strictEqual(passed, expected.replaceAll("\"upstream\"", "\"alias\""))
      assert.deepStrictEqual(stream.usage, metered)
      assert.isTrue(stream.isComplete)
    }
  )

  const unmetered = frame({
    id: "c1",
    model: "upstream",
    choices: [{ index: 0, delta: { content: "u" } }],
    usage: null
  })
  it("passes pieces whose usage is null, and meters the last usage", () => {
    const stream = open()
    assert.strictEqual(relay(stream, delta("a") + unmetered.repeat(20)), delta("a") + unmetered.repeat(20))
    assert.isUndefined(stream.usage)
    assert.strictEqual(relay(stream, usage), "")
    assert.deepStrictEqual(stream.usage, metered)
  })
})

describe("the content of a stream", () => {
  const role = frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" } }] })
  const call = frame({ choices: [{ index: 0, delta: { tool_calls: [{ function: { arguments: "{}" } }] } }] })
  const word = delta("a")
  const about = frame({ choices: [], prompt_filter_results: [{ content_filter_results: {} }] })

  it.each([
    ["begins with a piece of text", [": hi\n\n", about, role, word], [false, false, false, true]],
    ["begins with a piece of text in the same bytes as others", [role + word], [true]],
    ["begins with the end of that piece", [role + word.slice(0, -1), "\n"], [false, true]],
    ["begins with a tool call", [role, call], [false, true]],
    ["begins with a text of only an escape", [role, delta("\n")], [false, true]]
  ])("%s", (_, chunks, expected) => {
    const stream = open()
    const found = chunks.map((chunk) => {
      relay(stream, chunk)
      return stream.hasContent
    })
    assert.deepStrictEqual(found, expected)
  })
})

describe("a stream in pieces of any size", () => {
  const part = (json: object) => `event: ${Object.keys(json)[0]}\n${frame(json)}`
  const chat = [
    delta("plain"),
    frame({ id: "c1", model: "upstream", choices: [{ index: 0, delta: { content: "u" } }], usage: null }),
    frame({ choices: [{ index: 0, delta: { content: "no name, but \"usage\" and \"model\"" } }] }),
    frame({ choices: [{ index: 0, delta: { content: "z" } }], usage: { prompt_tokens: 9, completion_tokens: 5 } }),
    frame({ choices: [{ index: 0, delta: { tool_calls: [{ id: "1", function: { arguments: "{}" } }] } }] }),
    usage,
    finish,
    ": comment\n\n",
    "data:\n\n",
    "data:{\"choices\":[]}\n\n",
    "data: {\"choices\":[]}\r\n\r\n",
    "data: {\"choices\":[]}\r\n\n",
    "event: piece\ndata: {\"choices\":\ndata: []}\n\n",
    "data: {not json}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"dam\n\n",
    frame({ error: null, choices: [] }),
    frame({ error: "overloaded" }),
    done
  ]
  const streams: ReadonlyArray<readonly [options: Partial<PassingStreamOptions>, frames: ReadonlyArray<string>]> = [
    [{}, chat],
    [{ alias: "alias" }, chat],
    [{ alias: "alias", showUsage: true }, chat],
    [{ grammar: gemini.grammar, alias: "alias" }, [
      ...[undefined, "STOP"].map((finishReason) =>
        frame({
          candidates: [{ content: { parts: [{ text: "wörd" }] }, finishReason }],
          usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 2 }
        })
      ),
      frame({ candidates: [], modelVersion: "upstream" }),
      frame({ candidates: [{ content: { parts: [{ functionCall: { args: { error: 1 } } }] } }] }),
      frame({ error: {} })
    ]],
    [{ grammar: anthropic.grammar, alias: "alias" }, [
      part({ type: "message_start", message: { model: "upstream", usage: { input_tokens: 9, output_tokens: 1 } } }),
      part({ type: "content_block_delta", delta: { type: "text_delta", text: "plain" } }),
      part({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } }),
      part({ type: "message_stop" }),
      part({ type: "error", error: {} })
    ]]
  ]

  /** All that comes out of a stream. */
  const outcome = (options: Partial<PassingStreamOptions>, bytes: Uint8Array, sizes: ReadonlyArray<number>) => {
    let skipped = 0
    const stream = open({ ...options, onSkip: () => skipped++ })
    const passed: Array<Uint8Array> = []
    for (let at = 0, turn = 0; at < bytes.length && stream.failure === undefined; turn++) {
      const size = sizes[turn % sizes.length] ?? 1
      passed.push(...stream.push(bytes.subarray(at, at + size)))
      at += size
    }
    const { ends, errorData, failure, hasContent, textBytes, usage } = stream
    const last = failure === undefined ? stream.end() : undefined
    if (last instanceof Uint8Array) passed.push(last)
    return {
      ...{ ends, errorData, failure, hasContent, last, skipped, textBytes, usage, isComplete: stream.isComplete },
      text: Buffer.concat(passed).toString(),
      closing: Buffer.concat(stream.endWith({ total_tokens: 1 })).toString()
    }
  }

  const integer = (maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))
  // byte by byte, every frame is cut out and looked at by itself; most runs have few frames that are not plain
  it.prop(
    "is read as byte by byte",
    [
      Arbitrary.array(integer(40), { maxLength: 40 }),
      Arbitrary.array(integer(2_000), { minLength: 1, maxLength: 6 }),
      integer(60)
    ],
    ([choices, sizes, missing]) => {
      for (const [options, frames] of streams) {
        const text = [frames[0], ...choices.map((choice) => frames[choice] ?? frames[1]), done].join("")
        const bytes = Buffer.from(text).subarray(0, missing > 20 ? undefined : -missing)
        const expected = outcome(options, bytes, [1])
        for (const cuts of [sizes, [bytes.length]]) assert.deepStrictEqual(outcome(options, bytes, cuts), expected)
      }
    },
    { arbitrary: { runs: 500 } }
  )
})

describe("usage", () => {
  it("is metered and removed for a client that did not request it", () => {
    const stream = open()
    assert.strictEqual(relay(stream, delta("a") + finish + usage + done), delta("a") + finish + done)
    assert.deepStrictEqual(stream.usage, metered)
  })

  it("is metered and passed to a client that requested it", () => {
    const stream = open({ showUsage: true })
    assert.strictEqual(relay(stream, finish + usage + done), finish + usage + done)
    assert.deepStrictEqual(stream.usage, metered)
  })

  it("is metered and always passed if it comes with a part of the answer", () => {
    const last = frame({ choices: [{ index: 0, delta: { content: "z" }, finish_reason: "stop" }], usage: reported })
    const stream = open()
    assert.strictEqual(relay(stream, last + done), last + done)
    assert.deepStrictEqual(stream.usage, metered)
  })

  it("is the last report if a provider reports it with every part", () => {
    const stream = open()
    const part = (completion_tokens: number) =>
      frame({ choices: [{ index: 0, delta: {} }], usage: { prompt_tokens: 9, completion_tokens } })
    relay(stream, part(1) + part(2) + frame({ choices: [{ index: 0, delta: {} }], usage: null }))
    assert.deepStrictEqual(stream.usage, { inputTokens: 9, outputTokens: 2 })
  })

  it("counts reasoning as output, even if the provider counts it separately", () => {
    const metered = (more: object) => {
      const stream = open()
      relay(stream, frame({ choices: [], usage: { ...reported, completion_tokens: 4, ...more } }))
      return stream.usage
    }
    const completion_tokens_details = { reasoning_tokens: 94 }
    const thought = { inputTokens: 9, cachedTokens: 3, inputAudioTokens: 0, reasoningTokens: 94 }
    assert.deepStrictEqual(metered({ total_tokens: 107, completion_tokens_details }), { ...thought, outputTokens: 98 })
    assert.deepStrictEqual(metered({ completion_tokens: 98, total_tokens: 107, completion_tokens_details }), {
      ...thought,
      outputTokens: 98
    })
  })

  it("is the last report even if an earlier part was parsed for another reason", () => {
    const part = (part: object, candidatesTokenCount: number, more: object = {}) =>
      frame({
        candidates: [{ index: 0, content: { parts: [part] }, ...more }],
        usageMetadata: { promptTokenCount: 9, candidatesTokenCount }
      })
    const stream = open({ grammar: gemini.grammar })
    const text = part({ functionCall: { name: "report", args: { error: "disk full" } } }, 3) +
      part({ text: "Told." }, 5, { finishReason: "STOP" })
    assert.strictEqual(relay(stream, text), text)
    assert.deepStrictEqual(stream.usage, { inputTokens: 9, outputTokens: 5 })
  })

  it.each([
    { prompt_tokens: -1 },
    { prompt_tokens: "9" },
    { completion_tokens: 9 },
    {},
    "free"
  ])("is not metered if it is invalid: %j", (usage) => {
    const stream = open()
    const text = frame({ choices: [], usage })
    assert.strictEqual(relay(stream, text), text)
    assert.isUndefined(stream.usage)
  })
})

describe("the size of a stream's text", () => {
  it("is exact as long as all pieces have the same envelope", () => {
    for (const count of [1, 3, 5, 6, 500]) {
      const texts = Array.from({ length: count }, (_, index) => `wörd ${index} `)
      const stream = open()
      relay(stream, delta("") + texts.map(delta).join("") + finish)
      const bytes = Buffer.byteLength(texts.join(""))
      // the envelopes of the first and the last piece differ
      assert.closeTo(stream.textBytes, bytes, count > 5 ? 1 : 0)
    }
  })

  it("is at least a token for each piece that was not kept", () => {
    const padded = (at: number) =>
      frame({ choices: [{ index: 0, delta: { content: "a" } }], padding: "x".repeat(at < 90 ? 0 : 500) })
    const stream = open()
    relay(stream, Array.from({ length: 100 }, (_, at) => padded(at)).join("") + finish)
    assert.strictEqual(stream.textBytes, 96 * 4 + 4)
  })

  it("has text, reasoning, refusals and tool calls, but no pictures", () => {
    const stream = open()
    const image_url = { url: "data:image/png;base64,AAAA" }
    relay(
      stream,
      [
        delta("abc"),
        frame({ choices: [{ delta: { reasoning_content: "de", images: [{ image_url }] } }] }),
        frame({ choices: [{ delta: { tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }] } }] }),
        frame({ choices: [{ delta: { refusal: "no" } }] })
      ].join("")
    )
    assert.strictEqual(stream.textBytes, 3 + 2 + 2 + 2)
  })
})

describe("a model's alias", () => {
  it("replaces the provider's model name and nothing else", () => {
    const before = "data: {\"id\":\"c1\", \"model\" : \"upstream\",\"choices\":[{\"delta\":{\"content\":\"upstream\"," +
      "\"model\":\"upstream\"}}]}\r\n\r\n"
    assert.strictEqual(
      relay(open({ alias: "my \"model\"" }), before),
      before.replace("\"model\" : \"upstream\"", "\"model\" : \"my \\\"model\\\"\"")
    )
  })

  it("is not added if the provider names no model", () => {
    const text = frame({ choices: [] }) + done
    assert.strictEqual(relay(open({ alias: "alias" }), text), text)
  })

  it("is inserted into data of several lines", () => {
    const passed = relay(open({ alias: "alias" }), "id: é\ndata: {\"choices\":[],\ndata: \"model\":\"upstream\"}\n\n")
    assert.strictEqual(passed, "data: {\"choices\":[],\ndata: \"model\":\"alias\"}\nid: é\n\n")
  })
})

describe("an answer", () => {
  it.each([
    ["if it ended with [DONE]", delta("a") + done],
    ["if it ended with [DONE] in another notation", `${delta("a")}data:[DONE]\r\n\r\n`],
    ["if its last part has a finish_reason, for providers that send no [DONE]", delta("a") + finish],
    ["if usage follows the finish_reason", delta("a") + finish + usage]
  ])("is complete %s", (_, text) => {
    const stream = open()
    relay(stream, text)
    assert.isTrue(stream.isComplete)
  })

  it.each([
    ["that has not started", ""],
    ["of comments only", ": keep-alive\n\n"],
    ["that ends between two parts", delta("a")],
    ["that ends within a part", delta("a") + finish.slice(0, -1)],
    ["that ends within [DONE]", `${delta("a")}data: [DONE]\n`],
    ["whose parts have no finish_reason yet", frame({ choices: [{ index: 0, delta: {}, finish_reason: null }] })],
    ["that mentions [DONE] in its text only", delta("data: [DONE]")],
    ["that mentions a finish_reason in its text only", delta("\"finish_reason\":\"stop\"")]
  ])("%s is incomplete", (_, text) => {
    const stream = open()
    relay(stream, text)
    assert.isFalse(stream.isComplete)
  })
})

describe("an answer of several choices without [DONE]", () => {
  const word = (index: number) => frame({ choices: [{ index, delta: { content: "a" }, finish_reason: null }] })
  const last = (index: number) => frame({ choices: [{ index, delta: {}, finish_reason: "stop" }] })

  it.each([
    ["one of them has not ended", word(0) + word(1) + last(0), false],
    ["one of them goes on after the end of the other", word(0) + word(1) + last(0) + word(1).repeat(9), false],
    ["all have ended", word(0) + word(1) + last(0) + word(1) + last(1), true],
    ["all have ended, one of them long before", word(0) + word(1) + last(0) + word(1).repeat(9) + last(1), true],
    ["all have ended, and usage follows", word(0) + word(1) + last(0) + last(1) + usage.repeat(5), true],
    ["the provider has sent only one, which has ended", word(0) + last(0), true],
    ["the provider has sent only usage", usage, false]
  ])("is complete or not: %s", (_, text, expected) => {
    for (const cut of [1, text.length]) {
      const stream = open({ hasSeveralChoices: true })
      for (let at = 0; at < text.length; at += cut) stream.push(Buffer.from(text.slice(at, at + cut)))
      assert.strictEqual(stream.isComplete, expected)
    }
  })

  it("passes every byte", () => {
    const text = word(0) + word(1) + last(0) + ": comment\n\n" + word(1) + last(1)
    assert.strictEqual(relay(open({ hasSeveralChoices: true }), text), text)
  })
})

describe("a last frame without its final blank line", () => {
  const textOf = (kept: Uint8Array | string | undefined) =>
    kept instanceof Uint8Array ? Buffer.from(kept).toString() : kept

  it.each([
    ["a last part", delta("a"), finish.trimEnd(), finish],
    [
      "a last part with half of its final blank line",
      delta("a"),
      `${finish.trimEnd()}\r\n`,
      `${finish.trimEnd()}\r\n\n\n`
    ],
    ["[DONE]", delta("a"), "data: [DONE]", done],
    ["usage, which stays removed", delta("a") + finish, usage.trimEnd(), undefined],
    ["a comment after the end", delta("a") + done, ": bye", ": bye\n\n"]
  ])("is accepted, and gets its blank line, if it is complete: %s", (_, before, last, passed) => {
    const stream = open()
    relay(stream, before + last)
    assert.strictEqual(textOf(stream.end()), passed)
    assert.isTrue(stream.isComplete)
    if (last.startsWith(usage.trimEnd())) assert.deepStrictEqual(stream.usage, metered)
  })

  it.each([
    ["half a part", finish.slice(0, 40)],
    ["a part that is not the last", delta("b").trimEnd()],
    ["half of [DONE]", "data: [DON"],
    ["nothing", ""]
  ])("is dropped if it is not an end: %s", (_, last) => {
    const stream = open()
    relay(stream, delta("a") + last)
    assert.isUndefined(stream.end())
    assert.isFalse(stream.isComplete)
  })

  it("is not mixed up with the estimate that follows it", () => {
    const stream = open({ showUsage: true })
    relay(stream, delta("a") + finish.trimEnd())
    const last = Buffer.concat([stream.end() as Uint8Array, ...stream.endWith({ total_tokens: 1 })])
    const estimate = frame({ id: "c1", model: "upstream", choices: [], usage: { total_tokens: 1 } })
    assert.strictEqual(last.toString(), finish + estimate)
  })

  it("is an error if it reports an error", () => {
    const stream = open()
    relay(stream, delta("a") + frame({ error: "overloaded" }).trimEnd())
    assert.strictEqual(stream.end(), "error")
  })
})

describe("a stream fails with", () => {
  const cases: ReadonlyArray<readonly [name: string, text: string, outcome: "error" | "malformed"]> = [
    ["an error that the provider reports in the middle", frame({ error: { message: "overloaded" } }), "error"],
    ["an error with other members", frame({ id: "c1", choices: [], error: "overloaded" }), "error"],
    ["data that is not an object", "data: overloaded\n\n", "malformed"],
    ["an object that does not end", "data: {\"choices\":[\n\n", "malformed"],
    ["HTML", "data: <html>502</html>\n\n", "malformed"]
  ]
  for (const alias of [undefined, "alias"]) {
    it.each(cases)(`%s${alias === undefined ? "" : ", with an alias"}`, (_, text, outcome) => {
      const stream = open({ alias })
      const [before, ...more] = stream.push(Buffer.from(delta("a") + text + delta("b")))
      assert.deepStrictEqual([stream.failure, more], [outcome, []])
      assert.include(Buffer.from(before ?? []).toString(), "\"a\"")
    })
  }

  it("malformed if a frame exceeds the maximum size", () => {
    const stream = open()
    const part = Buffer.alloc(1024 * 1024, "x")
    for (let size = 0; size < maxFrameBytes; size += part.length) assert.deepStrictEqual(stream.push(part), [])
    assert.isUndefined(stream.failure)
    assert.deepStrictEqual(stream.push(part), [])
    assert.strictEqual(stream.failure, "malformed")
  })

  it("no failure if an error is null or mentioned in text only", () => {
    const text = frame({ error: null, choices: [] }) + delta("{\"error\":\"x\"}")
    assert.strictEqual(relay(open(), text), text)
  })
})
