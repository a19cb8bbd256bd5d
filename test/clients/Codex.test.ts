/** The Codex CLI over HTTP, with the built-in engine and with a provider of every API. Skipped if npm cannot install it. */
import { assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { codex, type CodexEvent, installCodex } from "../fixture/client/Codex.ts"
import { apis, chatProviders } from "../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

let missing: string | undefined
beforeAll(async () => {
  missing = await installCodex()
}, 100_000)
beforeEach(({ skip }) => skip(missing !== undefined, missing))

const run = (model: string, prompt: string) => codex({ url: shared().url, key: shared().key, model, prompt })

const textsOf = (events: ReadonlyArray<CodexEvent>) =>
  events.flatMap(({ item, type }) => type === "item.completed" && item?.type === "agent_message" ? [item.text] : [])

describe("codex", { timeout: 70_000 }, () => {
  it("gets a text of the built-in engine", async () => {
    const events = await run("local-chat", "Say: The bees dance.")
    assert.deepStrictEqual(textsOf(events), ["The bees dance."])
    const { usage } = events.at(-1) ?? {}
    assert.isTrue(usage !== undefined && usage.input_tokens > 0 && usage.output_tokens > 0)
  })

  it.each(apis)("runs a command for a model of a provider of %s, and shows it the result", async (api) => {
    const { provider } = shared()
    provider.say(({ messages }) => {
      const last = messages.at(-1)
      return last?.role === "tool"
        ? { reasoning: "Done.", text: `It said: ${/from the \w+/.exec(last.text)?.[0]}` }
        : { text: "Let me see.", toolCalls: [{ name: "exec_command", arguments: "{\"cmd\":\"echo from the shell\"}" }] }
    })
    const events = await run(`on-${api}`, "What does the shell say?")
    assert.deepStrictEqual(textsOf(events), ["Let me see.", "It said: from the shell"], JSON.stringify(events))
    assert.strictEqual(events.at(-1)?.type, "turn.completed")
  })

  it("does not send a request again that is too long for the model", async () => {
    const { provider } = shared()
    const error = { message: "prompt is too long: 200001 tokens > 200000 maximum", type: "invalid_request_error" }
    provider.behave({ kind: "status", status: 400, error })
    const before = provider.requests.length
    const events = await run("on-anthropic", "Hello")
    provider.behave({ kind: "answer" })
    assert.strictEqual(events.at(-1)?.type, "turn.failed", JSON.stringify(events))
    assert.strictEqual(provider.requests.length, before + 1)
  })
})
