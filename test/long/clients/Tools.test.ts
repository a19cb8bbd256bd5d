/**
 * The programs of `services/ingress/tools.md`, each with exactly the settings of that page and one prompt, which an agent answers after
 * a command. A program that npm or pip cannot install is skipped.
 */
import { assert, describe, it } from "@effect/vitest"
import { ask } from "../../fixture/client/programs/Tool.ts"
import { prompt, type Row, tools } from "../../fixture/client/programs/Tools.ts"
import { chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Answer, Question } from "../../fixture/provider/answers/Answer.ts"

const shared = sharedGateway(chatProviders())

const answer = "It is a quince."

/** Asks for the command, where the program has one, and says what it printed. */
const guide = ({ command }: Row) => ({ messages, tools = [] }: Question): Answer => {
  if (command === undefined) return { reasoning: "A fruit.", text: answer }
  const [name, input] = command
  // the title of a session, and the like
  if (!tools.some((tool) => tool.name === name)) return { text: "Words" }
  const printed = messages.filter(({ role }) => role === "tool").map(({ text }) => /quince/.exec(text)?.[0])
  if (printed.length > 0) return { reasoning: "A fruit.", text: `It is a ${printed[0]}.` }
  return { reasoning: "Let me see.", text: "Let me see.", toolCalls: [{ name, arguments: JSON.stringify(input) }] }
}

describe("with the settings of the page", () => {
  // an installation may take longer than the program
  it.for(tools)("$section prints an answer", { timeout: 400_000 }, async (tool, { skip }) => {
    const missing = await tool.install()
    skip(missing !== undefined, missing)
    const { key, provider, url } = shared()
    provider.say(guide(tool))
    const before = provider.requests.length
    const printed = await ask(tool, { url, key, model: `on-${tool.api}` })
    assert.include(printed, answer)
    const sent = provider.requests.slice(before).map(({ body }) => body.toString())
    const asked = tool.section === "LiteLLM in Python" ? "Hello" : prompt
    assert.isTrue(sent.some((body) => body.includes(asked)), "the prompt has not reached the provider")
  })
})
