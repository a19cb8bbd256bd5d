/** Agents with every kind of chat provider behind the gateway: opencode and deepagents. One that npm cannot install is skipped. */
import { assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import * as DeepAgents from "../../fixture/client/programs/DeepAgents.ts"
import { install } from "../../fixture/client/programs/NpmProgram.ts"
import * as OpenCode from "../../fixture/client/programs/OpenCode.ts"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Answer, Question } from "../../fixture/provider/answers/Answer.ts"

const shared = sharedGateway(chatProviders())

const resultsIn = ({ messages }: Question) => messages.filter(({ role }) => role === "tool")

describe("opencode", { timeout: 160_000 }, () => {
  let missing: string | undefined
  beforeAll(async () => {
    missing = await install(OpenCode.program)
  }, 100_000)
  beforeEach(({ skip }) => skip(missing !== undefined, missing))

  /** Without tools, it asks for a title of the session. */
  const guide = (question: Question): Answer => {
    if ((question.tools ?? []).length === 0) return { text: "Words" }
    const [result] = resultsIn(question)
    if (result !== undefined) return { reasoning: "Done.", text: `It said: ${/quince/.exec(result.text)?.[0]}.` }
    const call = { command: "echo quince", description: "Says a word" }
    return { toolCalls: [{ name: "bash", arguments: JSON.stringify(call) }] }
  }

  it.each(apis)("with a provider of %s", async (api) => {
    shared().provider.say(guide)
    const { url, key } = shared()
    const { log, text } = await OpenCode.openCode({ url, key, model: `on-${api}`, prompt: "Which word?" })
    assert.include(text, "It said: quince.", log)
  })
})

describe.each([["chat", false], ["responses", true]] as const)("deepagents, %s", (_, useResponsesApi) => {
  let missing: string | undefined
  beforeAll(async () => {
    missing = await install(DeepAgents.program)
  }, 100_000)
  beforeEach(({ skip }) => skip(missing !== undefined, missing))

  /** Writes a file, reads it and says what it read. */
  const guide = (question: Question): Answer => {
    const [written, read] = resultsIn(question)
    const file = { file_path: "/word.txt" }
    if (written === undefined) {
      return { toolCalls: [{ name: "write_file", arguments: JSON.stringify({ ...file, content: "quince" }) }] }
    }
    if (read === undefined) {
      return { reasoning: "Read it.", toolCalls: [{ name: "read_file", arguments: JSON.stringify(file) }] }
    }
    return { text: `It says: ${/quince/.exec(read.text)?.[0]}.` }
  }

  it.each(apis)("with a provider of %s", async (api) => {
    shared().provider.say(guide)
    const agent = await DeepAgents.deepAgent({
      model: `on-${api}`,
      maxRetries: 0,
      apiKey: shared().key,
      useResponsesApi,
      configuration: { baseURL: `${shared().url}/v1` }
    })
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Which word?" }] })
    assert.strictEqual(messages.at(-1)?.text, "It says: quince.")
  })
})
