/** Claude Code with a provider of every chat API: a session with a command and a picture, continued by a second prompt. */
import { assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { claudeCode, program } from "../../fixture/client/programs/ClaudeCode.ts"
import { install } from "../../fixture/client/programs/NpmProgram.ts"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Answer, Question } from "../../fixture/provider/answers/Answer.ts"
import { base64, paint } from "../../fixture/provider/answers/Media.ts"

const shared = sharedGateway(chatProviders())

const picture = paint(64, 64, "quince").bytes

/** Asks for a command, reads the picture that the command names, and says both. Asked again, says it again. */
const guide = ({ messages, tools = [] }: Question): Answer => {
  // the title of a session, and the like
  if (!tools.some(({ name }) => name === "Bash")) return { text: "Words" }
  const results = messages.filter(({ role }) => role === "tool")
  const [path] = results.map(({ text }) => /\/[\w/-]+quince\.png/.exec(text)?.[0]).filter((found) =>
    found !== undefined
  )
  const call = (name: string, input: object): Answer => ({
    reasoning: "Let me see.",
    text: "Let me see.",
    toolCalls: [{ name, arguments: JSON.stringify(input) }]
  })
  if (path === undefined) return call("Bash", { command: "ls $PWD/*.png", description: "Lists pictures" })
  if (results.length === 1) return call("Read", { file_path: path })
  return { reasoning: "I saw it.", text: "It is a quince." }
}

describe("claude code", { timeout: 200_000 }, () => {
  let missing: string | undefined
  beforeAll(async () => {
    missing = await install(program)
  }, 100_000)
  beforeEach(({ skip }) => skip(missing !== undefined, missing))

  it.each(apis)("with a provider of %s", async (api) => {
    const { provider, url } = shared()
    // as a developer has: what Claude Code sends must not count as a choice of something dearer
    const { key } = await shared().createKeyWith({ allowedModels: [`on-${api}`], monthlyBudgetUsd: 5 })
    provider.say(guide)
    const before = provider.requests.length
    const files = { "quince.png": picture }
    const session = { url, key, model: `on-${api}`, files }
    const { log, results } = await claudeCode(session, "What is it?", "What is it, again?")
    assert.deepStrictEqual(results.map(({ result }) => result), ["It is a quince.", "It is a quince."], log)
    const sent = provider.requests.slice(before).map(({ body }) => body.toString())
    assert.isTrue(sent.some((body) => body.includes(base64(picture))), "the picture has not reached the provider")
    assert.deepStrictEqual(results.map(({ is_error }) => is_error), [false, false], log)
  })
})
