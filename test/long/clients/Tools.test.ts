/**
 * The programs of `services/ingress/tools.md`, each with exactly the settings of that page and one prompt. A program that npm or pip
 * cannot install is skipped.
 */
import { assert, describe, it } from "@effect/vitest"
import { ask } from "../../fixture/client/programs/Tool.ts"
import { prompt, tools } from "../../fixture/client/programs/Tools.ts"
import { chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

const answer = "It is a quince."

describe("with the settings of the page", () => {
  // an installation may take longer than the program
  it.for(tools)("$section prints an answer", { timeout: 400_000 }, async (tool, { skip }) => {
    const missing = await tool.install()
    skip(missing !== undefined, missing)
    const { key, provider, url } = shared()
    provider.say({ reasoning: "A fruit.", text: answer })
    const before = provider.requests.length
    const printed = await ask(tool, { url, key, model: `on-${tool.api}` })
    assert.include(printed, answer)
    const sent = provider.requests.slice(before).map(({ body }) => body.toString())
    const asked = tool.section === "LiteLLM in Python" ? "Hello" : prompt
    assert.isTrue(sent.some((body) => body.includes(asked)), "the prompt has not reached the provider")
  })
})
