/**
 * The Codex CLI over HTTP and WebSocket, with the built-in engine and with a provider of every API: sessions with commands, a tool
 * of an MCP server and a compaction. A version that npm cannot install is skipped.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { type AddressInfo, connect, createServer } from "node:net"
import { codex, newest, older, textsOf, type Transport, transportNames } from "../../fixture/client/programs/Codex.ts"
import { install, type NpmProgram } from "../../fixture/client/programs/NpmProgram.ts"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Answer, Question } from "../../fixture/provider/answers/Answer.ts"

const shared = sharedGateway(chatProviders())

/** The methods and paths of the requests so far. */
const requestLines: Array<string> = []

/** Codex connects through it. */
const relay = createServer((client) => {
  const gateway = connect(Number(new URL(shared().url).port), "127.0.0.1")
  client.on("data", (bytes) => {
    const [line] = /^[A-Z]+ \/\S*(?= HTTP\/1\.1\r\n)/.exec(bytes.toString("latin1")) ?? []
    if (line !== undefined) requestLines.push(line)
  })
  client.pipe(gateway)
  gateway.pipe(client)
  for (const [one, other] of [[client, gateway], [gateway, client]] as const) one.on("error", () => other.destroy())
})
beforeAll(() => once(relay.listen(0, "127.0.0.1"), "listening"))
afterAll(() => void relay.close())

const run = (model: string, program: NpmProgram, transport: Transport, ...prompts: ReadonlyArray<string>) => {
  requestLines.length = 0
  const url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
  return codex({ url, key: shared().key, model, program, transport, compactsAt: 50_000 }, ...prompts)
}

/** The gateway's request for a summary, Codex's, and one that a provider answers with a compaction of its own. */
const isSummary = ({ messages }: Question): boolean =>
  messages[0]?.text.startsWith("Summarise the conversation below") === true ||
  /^compaction_trigger$|CONTEXT CHECKPOINT COMPACTION/.test(messages.at(-1)?.text ?? "")

/** Asks a command and a tool for a word each, and says both; after a compaction, what it says about them. */
const guide = (question: Question): Answer => {
  const conversation = question.messages.map(({ text }) => text).join("\n")
  const words = ["quince", "medlar"].filter((word) => conversation.includes(word))
  if (isSummary(question)) return { text: `The words so far: ${words.join(", ")}.` }
  const [summary] = /The words so far: [\w, ]*\./.exec(conversation) ?? []
  if (summary !== undefined) return { text: summary }
  if (words.length > 1) return { reasoning: "Both.", text: words.join(" and "), usage: { input: 60_000 } }
  if (words.length === 0) {
    return { text: "Let me see.", toolCalls: [{ name: "exec_command", arguments: "{\"cmd\":\"echo quince\"}" }] }
  }
  const { name = "", namespace } = question.tools?.find((tool) => tool.name.endsWith("get_word")) ?? {}
  return { toolCalls: [{ name, namespace, arguments: "{\"colour\":\"green\"}" }] }
}

const clients = ([["codex 0.171", newest], ["codex 0.144", older]] as const).flatMap(([name, program]) =>
  transportNames.map((transport) => ({ name, program, transport }))
)

describe.each(clients)("$name over $transport", { timeout: 100_000 }, ({ program, transport }) => {
  let missing: string | undefined
  beforeAll(async () => {
    missing = await install(program)
  }, 100_000)
  beforeEach(({ skip }) => skip(missing !== undefined, missing))

  it("with a provider of local", async () => {
    const [events = []] = await run("local-chat", program, transport, "Say: The bees dance.")
    assert.deepStrictEqual(textsOf(events), ["The bees dance."])
    const { usage } = events.at(-1) ?? {}
    assert.isTrue(usage !== undefined && usage.input_tokens > 0 && usage.output_tokens > 0)
  })

  it.each(apis)("with a provider of %s", async (api) => {
    shared().provider.say(guide)
    const turns = await run(`on-${api}`, program, transport, "Which words?", "Which words, again?")
    const said = JSON.stringify(turns)
    const texts = [["Let me see.", "quince and medlar"], ["The words so far: quince, medlar."]]
    assert.deepStrictEqual(turns.map(textsOf), texts, said)
    assert.deepStrictEqual(turns.map((events) => events.at(-1)?.type), ["turn.completed", "turn.completed"], said)
    const sent = new Set(requestLines.filter((line) => line.endsWith("/v1/responses")))
    assert.deepStrictEqual([...sent], [transport === "HTTP" ? "POST /v1/responses" : "GET /v1/responses"])
  })
})

describe("codex", () => {
  it.for(
    [
      ["is too long for the model", "prompt is too long: 200001 tokens > 200000 maximum"],
      ["exceeds the provider's credit", "Your credit balance is too low to access the Anthropic API"]
    ] as const
  )("does not retry a request that %s", { timeout: 160_000 }, async ([_, message], { skip }) => {
    const missing = await install(newest)
    skip(missing !== undefined, missing)
    const { provider } = shared()
    const error = { message, type: "invalid_request_error" }
    provider.behave({ kind: "status", status: 400, error })
    const before = provider.requests.length
    const [events = []] = await run("on-anthropic", newest, "HTTP", "Hello")
    provider.behave({ kind: "answer" })
    assert.strictEqual(events.at(-1)?.type, "turn.failed", JSON.stringify(events))
    assert.strictEqual(provider.requests.length, before + 1)
  })
})
