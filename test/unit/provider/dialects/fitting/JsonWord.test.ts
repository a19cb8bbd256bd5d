/** JSON without a schema, for which OpenAI and Cohere require that a message mentions it. */
import { assert, describe, it } from "@effect/vitest"
import { cohereProvider } from "../../../../../shared/provider/dialects/cohere/CohereProvider.ts"
import { generateContent } from "../../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { chatCompletionsProvider } from "../../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { responsesProvider } from "../../../../../shared/provider/dialects/responses/ResponsesProvider.ts"
import * as Json from "../../../../../shared/provider/json/Json.ts"
import { translate } from "../../../../fixture/calls/Translated.ts"

const json = { responseMimeType: "application/json" }
const said = (text: string) => ({ contents: [{ role: "user", parts: [{ text }] }] })
const told = (text: string) => ({ ...said("Bees"), systemInstruction: { parts: [{ text }] } })

/** The error of OpenAI and the note of Cohere are quoted in `JsonWord.ts`: any mention is enough, in any case. */
const table: ReadonlyArray<readonly [string, body: object, config: object, isAdded: boolean]> = [
  ["no mention", said("Bees"), json, true],
  ["no mention in the instructions", told("Be brief."), json, true],
  ["a mention", said("Bees, as json"), json, false],
  ["a mention in capitals", said("Bees, as JSON"), json, false],
  ["a mention in the instructions", told("Use JSON."), json, false],
  ["text", said("Bees"), {}, false],
  ["a schema", said("Bees"), { ...json, responseSchema: { type: "OBJECT", properties: {} } }, false]
]

describe("the instruction to answer in JSON", () => {
  it.each(table)("with %s", (_, body, generationConfig, isAdded) => {
    const request = { ...body, generationConfig }
    const options = { options: {} }
    for (
      const { sent: [sent], warnings } of [
        translate(generateContent, chatCompletionsProvider, request, options),
        translate(generateContent, responsesProvider, request, options),
        translate(generateContent, cohereProvider, request, options)
      ]
    ) {
      const { input, messages = input } = Json.fields(sent)
      const [first] = Json.list(messages).map(Json.fields)
      assert.strictEqual(/one JSON object/.test(JSON.stringify(first)), isAdded)
      assert.strictEqual(first?.["role"], isAdded || "systemInstruction" in body ? "system" : "user")
      assert.deepStrictEqual(warnings, [])
    }
  })
})
