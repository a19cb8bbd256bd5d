/** Chat through the whole gateway with LangChain, given only base URL and key. */
import { HumanMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { assert, describe, it } from "@effect/vitest"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

const question = [
  new HumanMessage("The lighthouse was built in 1871. Its keeper kept bees. When was the lighthouse built?")
]

describe("LangChain", () => {
  const make = () =>
    new ChatOpenAI({ model: "local-chat", apiKey: shared().key, configuration: { baseURL: `${shared().url}/v1` } })

  it("invokes", async () => {
    const answer = await make().invoke(question)
    assert.include(String(answer.content), "1871")
    const usage = answer.usage_metadata as { readonly output_tokens: number } | undefined
    assert.isAbove(usage?.output_tokens ?? 0, 3)
  })

  it("streams", async () => {
    let text = ""
    for await (const chunk of await make().stream(question)) text += String(chunk.content)
    assert.include(text, "1871")
  })

  it("calls a tool", async () => {
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
    const tools = [{
      type: "function" as const,
      function: { name: "get_weather", description: "The weather", parameters }
    }]
    const answer = await make().bindTools(tools, { tool_choice: "required" }).invoke("What is the weather in Oslo?")
    const [call] = answer.tool_calls ?? []
    assert.strictEqual(call?.name, "get_weather")
    assert.isString(call?.args["city"])
  })
})
