/** The arguments of tool calls from servers that send other text between their pieces, to clients whose blocks cannot overlap. */
import { assert, describe, it } from "@effect/vitest"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import type { AnswerEncoder } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import type { ModelEvent } from "../../../../shared/provider/dialects/conversation/ModelEvent.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { responses } from "../../../../shared/provider/dialects/responses/Responses.ts"

const identity = { id: "0".repeat(32), created: 1, model: "m", fingerprint: undefined }

const called = (index: number, fields: object) => ({ tool_calls: [{ index, ...fields }] })
const deltas = [
  { content: "Looking. " },
  called(0, { id: "call_1", function: { name: "find", arguments: "" } }),
  { content: "One moment. " },
  called(0, { function: { arguments: "{\"what\":" } }),
  { reasoning_content: "Honey is near." },
  called(0, { function: { arguments: "\"bees\"}" } }),
  called(1, { id: "call_2", function: { name: "find", arguments: "{\"what\":\"honey\"}" } }),
  { content: "Done." }
]

interface Frame {
  readonly index?: number
  readonly content_block?: { readonly type: string }
  readonly delta?: { readonly text?: string; readonly thinking?: string; readonly partial_json?: string }
  readonly type: string
  readonly response?: { readonly output: ReadonlyArray<Readonly<Record<string, unknown>>> }
}

/** The frames of a client's stream. */
const framesOf = (encoder: AnswerEncoder): ReadonlyArray<Frame> => {
  const decoder = chatCompletionsProvider.decoder()
  const said = deltas.flatMap((delta) => decoder.frame({ choices: [{ index: 0, delta }] }) ?? assert.fail("malformed"))
  const end = decoder.frame({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }) ?? []
  const frames = [...said, ...end, ...decoder.last()].map((event) => encoder.frames(event)).join("")
  return (frames + encoder.lastFrames()).split("\n").flatMap((line) =>
    line.startsWith("data: {") ? [JSON.parse(line.slice(6)) as Frame] : []
  )
}

describe("the arguments of a call between whose pieces the server says something else", () => {
  it("are whole in the blocks of messages, and what it said follows the call", () => {
    const blocks: Array<string> = []
    for (
      const { content_block: block, delta = {}, index = 0 } of framesOf(messages.encoder({
        model: "m",
        max_tokens: 9,
        messages: []
      }, identity))
    ) {
      if (block !== undefined) blocks[index] = `${block.type}: `
      const { partial_json: json, text, thinking } = delta
      if (blocks[index] !== undefined) blocks[index] += text ?? thinking ?? json ?? ""
    }
    assert.deepStrictEqual(blocks, [
      "text: Looking. ",
      "tool_use: {\"what\":\"bees\"}",
      "text: One moment. ",
      "thinking: Honey is near.",
      "tool_use: {\"what\":\"honey\"}",
      "text: Done."
    ])
  })

  it("are whole in the items of responses", () => {
    const frames = framesOf(responses.encoder({ model: "m", input: "?" }, identity))
    const output = frames.find(({ type }) => type === "response.completed")?.response?.output ?? []
    assert.deepStrictEqual(output.flatMap((item) => "arguments" in item ? [item["arguments"]] : []), [
      "{\"what\":\"bees\"}",
      "{\"what\":\"honey\"}"
    ])
  })
})

describe("what the server says after a call", () => {
  const start = (json: string) => {
    const decoder = chatCompletionsProvider.decoder()
    const read = (delta: object) => decoder.frame({ choices: [{ index: 0, delta }] })
    read(called(0, { id: "call_1", function: { name: "find", arguments: json } }))
    return { decoder, read }
  }
  const text = { type: "text", choice: 0, delta: "One moment. " } as const

  it("is passed on at once if the arguments are whole, and otherwise as soon as they are", () => {
    const whole = start("{\"what\":\"}\"}")
    assert.deepStrictEqual(whole.read({ content: "One moment. " }), [text])
    assert.deepStrictEqual(whole.read(called(0, { function: { arguments: "\n" } })), [])
    assert.deepStrictEqual(whole.decoder.last().map(({ type }) => type), ["finish"])

    const half = start("{\"what\":\"}")
    assert.deepStrictEqual(half.read({ content: "One moment. " }), [])
    const end = { type: "toolArguments", choice: 0, call: 0, delta: "\"}" } as const
    assert.deepStrictEqual(half.read(called(0, { function: { arguments: "\"}" } })), [end, text])
  })

  it("ends the arguments: the answer is malformed if others follow", () => {
    const { read } = start("{}")
    read({ content: "One moment. " })
    assert.isUndefined(read(called(0, { function: { arguments: "[1]" } })))
  })

  it("is in a block of its own at once", () => {
    const { read } = start("{}")
    const encoder = messages.encoder({ model: "m", max_tokens: 9, messages: [] }, identity)
    encoder.frames({ type: "toolCall", choice: 0, call: 0, id: "call_1", name: "find" })
    const frames = (read({ content: "One moment. " }) ?? []).map((event) => encoder.frames(event)).join("")
    const types = frames.split("\n").flatMap((line) => line.startsWith("event: ") ? [line.slice("event: ".length)] : [])
    assert.deepStrictEqual(types, ["content_block_stop", "content_block_start", "content_block_delta"])
  })
})

describe("calls to a client of generateContent", () => {
  const events: ReadonlyArray<ModelEvent> = [
    { type: "text", choice: 0, delta: "Looking." },
    ...["honey", "bees"].flatMap((what, call): ReadonlyArray<ModelEvent> => [
      { type: "toolCall", choice: 0, call, id: `call_${call}`, name: "find" },
      { type: "toolArguments", choice: 0, call, delta: "{\"what\":" },
      { type: "toolArguments", choice: 0, call, delta: `"${what}"}` }
    ]),
    { type: "text", choice: 0, delta: "Done." },
    { type: "finish", choice: 0, reason: "tool_calls" }
  ]
  const callOf = (call: number, what: string) => ({
    functionCall: { id: `call_${call}`, name: "find", args: { what } }
  })
  const parts = [{ text: "Looking." }, callOf(0, "honey"), callOf(1, "bees"), { text: "Done." }]
  const encoder = () => generateContent.encoder({ contents: [] }, identity)

  it("come in their place, each as soon as something follows", () => {
    const streaming = encoder()
    const frames = events.map((event) => streaming.frames(event))
    const partsIn = (frame: string): unknown =>
      frame === "" ? [] : JSON.parse(frame.slice("data: ".length)).candidates[0].content.parts
    assert.deepStrictEqual(frames.map(partsIn), [[parts[0]], [], [], [], [parts[1]], [], [], [parts[2], parts[3]], []])
    assert.deepStrictEqual(partsIn(streaming.lastFrames()), [{ text: "" }])
    assert.deepNestedInclude(encoder().body(events), { "candidates[0].content.parts": parts })
  })

  it("come with the end if nothing follows", () => {
    const streaming = encoder()
    for (const event of events.slice(0, 4)) streaming.frames(event)
    assert.include(streaming.lastFrames(), JSON.stringify(callOf(0, "honey")))
  })
})
