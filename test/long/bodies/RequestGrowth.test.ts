/**
 * Time grows about linearly with input: every decoder, translator and scanner on 3,000 and 30,000 elements of
 * everything that a client can send in numbers.
 */
import { describe } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { Headers } from "effect/http"
import * as IncomingBody from "../../../services/ingress/request/IncomingBody.ts"
import { operationNamed } from "../../../shared/contract/operations/operations.ts"
import { tokenEstimate } from "../../../shared/contract/TokenEstimate.ts"
import { anthropic } from "../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { chatCompletions } from "../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import type {
  AnswerEncoder,
  AnswerIdentity,
  ProviderDialect
} from "../../../shared/provider/dialects/conversation/Dialect.ts"
import { generateContent } from "../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { Losses } from "../../../shared/provider/dialects/conversation/Losses.ts"
import { messages } from "../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import type { ModelEvent } from "../../../shared/provider/dialects/conversation/ModelEvent.ts"
import { toOptions } from "../../../shared/provider/protocols/ai-sdk/AiSdkPrompt.ts"
import { gemini } from "../../../shared/provider/protocols/gemini/Gemini.ts"
import { JsonOutline } from "../../../shared/provider/json/JsonOutline.ts"
import * as MultipartText from "../../../shared/provider/protocols/openai/MultipartText.ts"
import { openAi } from "../../../shared/provider/protocols/openai/OpenAi.ts"
import type { Call } from "../../../shared/provider/call/Protocol.ts"
import { SseFrames } from "../../../shared/bounds/SseFrames.ts"
import * as TokenEstimate from "../../../shared/provider/call/TokenEstimate.ts"
import * as TranslationWarnings from "../../../shared/provider/call/TranslationWarnings.ts"
import { sessionOf } from "../../../shared/provider/call/SessionOf.ts"
import { clientDialects } from "../../fixture/ClientDialects.ts"
import { growsLinearly } from "../../fixture/Growth.ts"
import { nameOf, type Shape, shapes, shapesForWorkers } from "../../fixture/Shapes.ts"

const bytesOf = ({ body }: Shape, elements: number): Buffer => Buffer.from(JSON.stringify(body(elements)))

const callOf = ({ sample }: Shape, body: Uint8Array): Call => ({
  operation: operationNamed(sample.operation)!,
  model: sample.model,
  answersAs: sample.model,
  workload: operationNamed(sample.operation)!.workloads[0],
  tenant: "key_test",
  contentType: "application/json",
  body,
  endpoint: { name: "local", provider: { protocol: "local" }, model: "upstream" }
})

describe("ingress decodes", () => {
  for (const shape of shapes) {
    const operation = operationNamed(shape.sample.operation)!
    growsLinearly(nameOf(shape), (elements) => {
      const bytes = bytesOf(shape, elements)
      return () => Effect.runPromise(Effect.result(IncomingBody.decode(operation, Headers.empty, bytes)))
    })
  }
})

describe("a worker scans", () => {
  const protocols = [openAi, anthropic, gemini]
  for (const shape of shapesForWorkers) {
    growsLinearly(nameOf(shape), (elements) => {
      const bytes = bytesOf(shape, elements)
      return () => {
        // a new array, so that no result can be cached by identity
        const call = callOf(shape, Uint8Array.from(bytes))
        const outline = new JsonOutline()
        outline.push(call.body)
        const fields = outline.fields ?? {}
        return [
          sessionOf(call, "session"),
          TokenEstimate.of(call),
          protocols.map(({ relays }) => relays.get(call.operation.name)?.(call)),
          tokenEstimate(call.operation, call.body.length, (name) => fields[name])
        ]
      }
    })
  }
})

// each translator gets only requests that it has decoded itself
describe("a worker translates", () => {
  const providers: Readonly<Record<string, ProviderDialect<object> | undefined>> = {
    openai: chatCompletionsProvider as ProviderDialect<object>,
    anthropic: messagesProvider as ProviderDialect<object>,
    gemini: generateContentProvider as ProviderDialect<object>,
    sdk: undefined
  }
  for (const shape of shapesForWorkers) {
    const client = clientDialects[shape.sample.operation]
    if (client === undefined) continue
    const decode = Schema.decodeUnknownResult(client.request)
    growsLinearly(nameOf(shape), (elements) => {
      const json: unknown = JSON.parse(JSON.stringify({ model: "m", ...shape.body(elements) }))
      const decoded = decode(json)
      return () => {
        if (Result.isFailure(decoded)) return undefined
        return Object.values(providers).map((provider) => {
          const losses = new Losses("ordinary", client.settings)
          losses.recordUnmapped(json, client.fates)
          const conversations = [client.toConversation(decoded.success, losses)].flat()
          const sent = conversations.map((conversation) =>
            provider === undefined
              ? toOptions(conversation, "v4", losses)
              : provider.toRequest(conversation, { model: "m", streams: false, losses }, {})
          )
          return [JSON.stringify(sent), TranslationWarnings.toHeaders(losses.warnings)]
        })
      }
    })
  }
})

const identity: AnswerIdentity = { id: "1", created: 1, model: "m", fingerprint: undefined }

describe("a worker writes", () => {
  const user = [{ role: "user" as const, content: "How do bees dance?" }]
  const encoders: Readonly<Record<string, () => AnswerEncoder>> = {
    "chat completions": () => chatCompletions.encoder({ model: "m", messages: user }, identity),
    "messages": () => messages.encoder({ model: "m", max_tokens: 1, messages: user }, identity),
    "generateContent": () => generateContent.encoder({ contents: [{ parts: [{ text: "How?" }] }] }, identity)
  }
  const eventsOf: Readonly<Record<string, (count: number) => ReadonlyArray<ModelEvent>>> = {
    "text deltas": (count) => Array.from({ length: count }, () => ({ type: "text", choice: 0, delta: "bees " })),
    "reasoning deltas": (count) =>
      Array.from({ length: count }, () => ({ type: "reasoning", choice: 0, delta: "bees " })),
    "tool calls": (count) =>
      Array.from({ length: count }, (_, call): ReadonlyArray<ModelEvent> => [
        { type: "toolCall", choice: 0, call, id: `c${call}`, name: "f" },
        { type: "toolArguments", choice: 0, call, delta: "{}" }
      ]).flat()
  }
  for (const [client, encoder] of Object.entries(encoders)) {
    for (const [name, events] of Object.entries(eventsOf)) {
      growsLinearly(`${name} for a client of ${client}`, (elements) => {
        const all = events(elements)
        return () => {
          const streamed = encoder()
          let frames = 0
          for (const event of all) frames += streamed.frames(event).length
          return [frames, JSON.stringify(encoder().body(all))]
        }
      })
    }
  }
})

describe("a worker reads", () => {
  const calls = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ index, id: `c${index}`, function: { name: "f", arguments: "{}" } }))
  growsLinearly("tool calls of an answer", (elements) => {
    const answer = { choices: [{ index: 0, message: { tool_calls: calls(elements) }, finish_reason: "tool_calls" }] }
    return () => chatCompletionsProvider.decoder().whole(answer)
  })
  growsLinearly("a frame of many lines in many chunks", (elements) => {
    const line = Buffer.from("data: bees\n")
    return () => {
      const frames = new SseFrames()
      for (let at = 0; at < elements; at++) frames.push(line)
      return frames.push(Buffer.from("\n"))
    }
  })
  growsLinearly("parts of a form without a value", (elements) => {
    const part = "\r\n--b\r\ncontent-disposition: form-data; name=\"a\""
    const body = Buffer.from(`${part.repeat(elements)}\r\n--b--\r\n`)
    return () => MultipartText.names(body, "multipart/form-data; boundary=b")
  })
})
