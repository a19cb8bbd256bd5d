/** The digits of arguments, schemas and seeds on every path between clients and providers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { generateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import type { HttpProtocol } from "../../../../shared/provider/exchange/HttpProtocol.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { cohereChat } from "../../../../shared/provider/protocols/cohere/CohereChat.ts"
import { gemini } from "../../../../shared/provider/protocols/gemini/Gemini.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import { play } from "../../../fixture/calls/ScriptedCall.ts"

const input = "{\"id\":725653563933458432,\"price\":1.10,\"list\":[0.12345678901234567890,-0,1e400]}"
const quoted = JSON.stringify(input)
const schema = "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\",\"maximum\":9223372036854775807}}}"
const seed = "18446744073709551557"

/** What it is at Gemini, whose seeds have 32 bits, if another dialect is translated: the rest of 2^31. */
const geminiSeed = "2147483589"

/** Requests with arguments, a schema and, where the dialect has one, a seed. */
const clients: Readonly<Record<string, readonly [Operation, string]>> = {
  chat: [
    chatCompletions,
    `{"model":"m","temperature":1.0,"seed":${seed},"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${quoted}}}]},{"role":"tool","tool_call_id":"c","content":"b"}],"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`
  ],
  messages: [
    messages,
    `{"model":"m","max_tokens":9,"temperature":1.0,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"b"}]}],"tools":[{"name":"f","input_schema":${schema}}]}`
  ],
  gemini: [
    generateContent,
    `{"generationConfig":{"temperature":1.0,"seed":${seed}},"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":${input}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":${input}}}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":${schema}}]}]}`
  ],
  responses: [
    responses,
    `{"model":"m","temperature":1.0,"input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":${quoted}},{"type":"function_call_output","call_id":"c","output":"b"}],"tools":[{"type":"function","name":"f","parameters":${schema}}]}`
  ]
}

interface Side {
  readonly protocol: HttpProtocol<never>
  /** How the arguments are written in a request and an answer: as an object, or as a text. */
  readonly written: string
  readonly answer: string
}

const providers: Readonly<Record<string, Side>> = {
  openai: {
    protocol: openAi as unknown as HttpProtocol<never>,
    written: quoted,
    answer:
      `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${quoted}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12.0,"completion_tokens":3}}`
  },
  // some servers send the arguments as an object
  "openai, as an object": {
    protocol: openAi as unknown as HttpProtocol<never>,
    written: quoted,
    answer:
      `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${input}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":12,"completion_tokens":3}}`
  },
  anthropic: {
    protocol: anthropic as unknown as HttpProtocol<never>,
    written: input,
    answer:
      `{"type":"message","content":[{"type":"tool_use","id":"c","name":"f","input":${input}}],"stop_reason":"tool_use","usage":{"input_tokens":12,"output_tokens":3}}`
  },
  gemini: {
    protocol: gemini as unknown as HttpProtocol<never>,
    written: input,
    answer:
      `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${input}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":3}}`
  },
  cohere: {
    protocol: cohereChat as unknown as HttpProtocol<never>,
    written: quoted,
    answer:
      `{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":${quoted}}}]},"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":12,"output_tokens":3}}}`
  }
}

const rows = Object.keys(clients).flatMap((client) =>
  Object.keys(providers).map((provider) => [client, provider] as const)
)

describe("every digit survives", () => {
  it.effect.each(rows)(
    "from a client of %s by a provider of %s, and back",
    ([client, provider]) =>
      Effect.gen(function*() {
        const [operation, body] = clients[client]!
        const { answer, protocol, written } = providers[provider]!
        const played = yield* play(protocol, { operation, body }, { contentType: "application/json", body: [answer] })
        assert.isUndefined(played.error)
        assert.include(played.sent, written)
        assert.include(played.sent, "9223372036854775807")
        assert.deepInclude(played.usage, { inputTokens: 12, outputTokens: 3 })
        const isObject = client === "messages" || client === "gemini"
        // a relayed answer is unchanged
        const isOwn = provider.startsWith("openai") ? client === "chat" : provider === client
        if (!isOwn) assert.include(played.text, isObject ? input : quoted)
        const expected = provider === "gemini" && client !== "gemini" ? geminiSeed : seed
        if (body.includes(seed) && provider !== "anthropic") assert.include(played.sent, `"seed":${expected}`)
      })
  )
})
