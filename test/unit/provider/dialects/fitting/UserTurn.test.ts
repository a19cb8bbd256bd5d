/** Conversations of instructions alone, which OpenAI takes, at providers that reject them. */
import { assert, describe, it } from "@effect/vitest"
import { messagesProvider } from "../../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { generateContentProvider } from "../../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { chatCompletions } from "../../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { responses } from "../../../../../shared/provider/dialects/responses/Responses.ts"
import * as Json from "../../../../../shared/provider/json/Json.ts"
import { translate } from "../../../../fixture/calls/Translated.ts"

const system = (content: string) => ({ role: "system", content })
const user = { role: "user", content: "c" }
const warning = (path: string) => [`${path} became a message of the user, since this model needs one`]

/** The texts of the instructions, and those of messages. */
const textsIn = (sent: unknown) => {
  const { contents, messages, system, systemInstruction } = Json.fields(sent)
  const texts = (parts: unknown) => Json.list(parts).map((part) => Json.fields(part)["text"])
  const front = system === undefined ? texts(Json.fields(systemInstruction)["parts"]) : texts(system)
  const said = Json.list(messages ?? contents).map(Json.fields).map(({ content, parts, role }) => [
    role,
    ...texts(content ?? parts)
  ])
  return { front, said }
}

// Anthropic: "messages: at least one message is required"; Gemini: "contents is not specified"
const rows = [
  ["one instruction", { messages: [system("a")] }, [], [["user", "a"]], warning("messages[0]")],
  ["two instructions", { messages: [system("a"), system("b")] }, ["a"], [["user", "b"]], warning("messages[1]")],
  ["the developer's", { messages: [{ role: "developer", content: "a" }] }, [], [["user", "a"]], warning("messages[0]")],
  ["a message beside them", { messages: [system("a"), user] }, ["a"], [["user", "c"]], []]
] as const

describe.each([["Claude", messagesProvider], ["Gemini", generateContentProvider]] as const)(
  "%s gets",
  (_, provider) => {
    it.each(rows)("%s", (_, body, front, said, warnings) => {
      const translated = translate<unknown, object>(
        chatCompletions as never,
        provider as never,
        { model: "alias", ...body },
        { options: {} }
      )
      assert.deepStrictEqual(textsIn(translated.sent[0]), { front: [...front], said: said.map((one) => [...one]) })
      assert.deepStrictEqual(translated.warnings, [...warnings])
    })

    it("instructions of responses", () => {
      const translated = translate<unknown, object>(
        responses as never,
        provider as never,
        { model: "alias", instructions: "a", input: [{ role: "system", content: "b" }] },
        { options: {} }
      )
      assert.deepStrictEqual(textsIn(translated.sent[0]), { front: ["a"], said: [["user", "b"]] })
    })
  }
)
