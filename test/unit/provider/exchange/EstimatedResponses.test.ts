/** Estimates of the responses format count each text once, although its events repeat the answer and parts of the request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import type { Call } from "../../../../shared/provider/call/Protocol.ts"
import * as OpenAiResponses from "../../../../shared/provider/protocols/openai/OpenAiResponses.ts"
import type { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { idleSink } from "../../../fixture/calls/IdleSink.ts"

const unused = () => assert.fail("unexpected fetch")
const guard = { fetch: unused, post: unused, dispatcher: unused }

interface Answer {
  readonly contentType: string
  readonly pieces: ReadonlyArray<string>
  /** The client disconnects before the answer ends. */
  readonly isCut?: boolean
}

/** The usage of a call with this answer. */
const usageOf = Effect.fnUntraced(
  function*(operation: Operation, body: object, { contentType, isCut = false, pieces }: Answer) {
    const upstream: Upstream["Service"] = {
      exchange: (_request, receiver) =>
        Effect.callback<void, JobError>((resume) => {
          const { onData, onHead } = receiver({
            pause: unused,
            resume: unused,
            noteContent: () => undefined,
            fail: (error) => resume(Effect.fail(error))
          })
          onHead(200, { "content-type": contentType })
          for (const piece of pieces) onData(Buffer.from(piece))
          if (!isCut) resume(Effect.void)
        })
    }
    const perform = OpenAiResponses.make({ upstream, guard, secrets: { resolve: () => Effect.succeedNone } })
    const cut: Array<Usage> = []
    const call: Call = {
      operation,
      model: "m",
      answersAs: "m",
      workload: "chat",
      tenant: "t",
      contentType: "application/json",
      body: Buffer.from(JSON.stringify({ model: "m", ...body })),
      onCut: (usage) => cut.push(usage),
      endpoint: {
        name: "p",
        model: "m",
        provider: { protocol: "openai", baseUrl: "https://p.test/v1", options: { apis: ["responses"] } }
      }
    }
    if (!isCut) return yield* perform(call, idleSink())
    const fiber = yield* Effect.forkChild(perform(call, idleSink()))
    yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    return cut[0]
  }
)

/** A text of 3,000 tokens, and the pieces that a model would write. */
const words = Array.from({ length: 2_000 }, () => "bees, ")
const text = words.join("")
const echo = {
  instructions: "Answer in verse. ".repeat(4_000),
  tools: [{ type: "function", name: "look", description: "See. ".repeat(2_000), parameters: {} }]
}
const content = [{ type: "output_text", text, annotations: [] }]
const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content }
const response = { id: "resp_1", object: "response", created_at: 1, model: "m", ...echo }
const whole = { ...response, status: "completed", output: [item] }

const place = { item_id: "msg_1", output_index: 0, content_index: 0 }
const started = [
  { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
  { type: "response.in_progress", response: { ...response, status: "in_progress", output: [] } },
  { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
  { type: "response.content_part.added", ...place, part: { ...content[0], text: "" } }
]
const deltas = words.map((delta) => ({ type: "response.output_text.delta", ...place, delta }))
const ended = [
  { type: "response.output_text.done", ...place, text },
  { type: "response.content_part.done", ...place, part: content[0] },
  { type: "response.output_item.done", output_index: 0, item },
  { type: "response.completed", response: whole }
]

const stream = (events: ReadonlyArray<{ readonly type: string }>, hasNames = true) => ({
  contentType: "text/event-stream",
  pieces: events.map((event) => `${hasNames ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`)
})
const all = [...started, ...deltas, ...ended]

describe("an answer in the responses format without usage", () => {
  const answers: Readonly<Record<string, Answer>> = {
    "a whole stream": stream(all),
    "a whole stream in one piece, without names of events": {
      ...stream(all),
      pieces: [stream(all, false).pieces.join("")]
    },
    "a stream, cut after its text": { ...stream([...started, ...deltas]), isCut: true },
    "a stream, cut before its last event": { ...stream(all.slice(0, -1)), isCut: true },
    "JSON": { contentType: "application/json", pieces: [JSON.stringify(whole)] }
  }
  const clients = [
    ["relayed", responses, { input: "What is a hive?!" }],
    ["translated", chatCompletions, { messages: [{ role: "user", content: "What is a hive?!" }] }]
  ] as const
  for (const [how, operation, request] of clients) {
    for (const [name, answer] of Object.entries(answers)) {
      it.effect(`is estimated by its text: ${name}, ${how}`, () =>
        Effect.gen(function*() {
          const streams = answer.contentType === "text/event-stream"
          const usage = yield* usageOf(operation, { ...request, stream: streams }, answer)
          assert.deepInclude(usage, { inputTokens: 4, outputTokens: 3_000, estimatedTokens: 3_004 })
        }))
    }
  }

  it.effect("is estimated by the results of tools in the request", () =>
    Effect.gen(function*() {
      const input = [
        { type: "function_call", call_id: "1", name: "look", arguments: "{}  " },
        { type: "function_call_output", call_id: "1", output: "bees".repeat(100_000) },
        { type: "function_call_output", call_id: "2", output: [{ type: "input_text", text: "hive" }] }
      ]
      const usage = yield* usageOf(responses, { input, stream: false }, answers["JSON"]!)
      assert.deepInclude(usage, { inputTokens: 1 + 100_000 + 1 })
    }))
})
