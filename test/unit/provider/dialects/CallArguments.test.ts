/** The arguments of tool calls from servers that send other text between their pieces, to clients whose blocks cannot overlap. */
import { assert, describe, it } from "@effect/vitest"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import type { AnswerEncoder } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
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
