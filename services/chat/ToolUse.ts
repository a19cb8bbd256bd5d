/** Decides mechanically which tools the engine calls, and with what. */
import { Effect } from "effect"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Conversation, ToolDefinition } from "../../shared/provider/chat/Conversation.ts"
import { contentWords } from "../../shared/provider/local/Words.ts"
import { Facts, fieldWords } from "./Facts.ts"
import { isJsonObject, jsonValue } from "./JsonAnswer.ts"
import type { Material } from "./Material.ts"
import { splitSentences, wordIndex } from "./Sentences.ts"

export interface PlannedCall {
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
}

/**
 * The calls to answer with; none where the engine answers in words.
 *
 * A demanded call is made whatever the conversation holds. Left to choose, the engine calls the tools that the user
 * names or plainly asks for, each once: after its result is there, the engine answers from that. Fails where a call is
 * demanded of a tool that is not there.
 */
export const planCalls = Effect.fnUntraced(function*(conversation: Conversation, material: Material, variant: number) {
  const tools = yield* chooseTools(conversation, material)
  return yield* Effect.forEach(tools, (tool) => planCall(tool, material, variant))
})

const chooseTools = (
  { toolChoice, tools }: Conversation,
  material: Material
): Effect.Effect<ReadonlyArray<ToolDefinition>, InvalidRequest> => {
  switch (toolChoice.type) {
    case "none":
      return Effect.succeed([])
    case "tool": {
      const tool = tools.find(({ name }) => name === toolChoice.name)
      return tool === undefined
        ? Effect.fail(InvalidRequest.at("tool_choice", "names a tool that is not among the tools of the request"))
        : Effect.succeed([tool])
    }
    case "required": {
      const asked = askedTools(tools, material)
      const [first] = byLikeness(tools, material).map(({ tool }) => tool)
      return first === undefined
        ? Effect.fail(InvalidRequest.at("tool_choice", "demands a tool call, but the request has no tools"))
        : Effect.succeed(asked.length > 0 ? asked : [first])
    }
    case "auto":
      return Effect.succeed(askedTools(tools, material))
  }
}

const planCall = Effect.fnUntraced(function*(tool: ToolDefinition, material: Material, variant: number) {
  const said = material.said === "" ? "." : material.said
  const value = yield* jsonValue(tool.parameters ?? {}, {
    facts: new Facts(said),
    prose: said,
    sentences: splitSentences(said),
    sparing: true,
    variant
  })
  const call: PlannedCall = { name: tool.name, arguments: JSON.stringify(isJsonObject(value) ? value : {}) }
  return call
})

/** The tools that the user names or plainly asks for and that gave nothing yet, in the order of their mention. */
const askedTools = (tools: ReadonlyArray<ToolDefinition>, material: Material): ReadonlyArray<ToolDefinition> => {
  const done = new Set(material.results.map(({ tool }) => tool))
  const open = tools.filter(({ name }) => !done.has(name))
  const named = open.map((tool) => ({ tool, at: mention(tool.name, material.said) })).filter(({ at }) => at !== -1)
  if (named.length > 0) return named.toSorted((a, b) => a.at - b.at).map(({ tool }) => tool)
  // Having the answer to one tool, the engine does not guess at further ones.
  return done.size > 0 ? [] : byLikeness(open, material).filter(({ likeness }) => likeness >= 1).map(({ tool }) => tool)
}

const forbidding = /\b(?:do not|don't|never|without|avoid|not)\b/iu

/** Where the text names the tool, as `get_weather`, `getWeather` or `get weather`; -1 where not, or to forbid it. */
const mention = (name: string, text: string): number => {
  const spaced = fieldWords(name).join(" ")
  const lower = text.toLowerCase()
  const at = Math.max(
    wordIndex(lower, name.toLowerCase()),
    // A name of one everyday word is no mention.
    spaced.includes(" ") ? wordIndex(lower, spaced) : -1
  )
  if (at === -1 || forbidding.test(/[^.!?\n]{0,30}$/u.exec(text.slice(0, at))?.[0] ?? "")) return -1
  const ordinary = !/[_\-.\d]|\p{Ll}\p{Lu}/u.test(name)
  return ordinary && !callWords.test(text) ? -1 : at
}

const callWords = /\b(?:call|use|using|run|invoke|tool|function)\b|`/iu

/** Verbs that tools' names begin with; they say nothing of what a tool is for. */
const verbs = new Set(contentWords(
  "get fetch find look lookup search query list show create make do run call compute calculate set update send check read retrieve return tool function"
))

/** The tools with how far the user's words are theirs, closest first: from 1 on they plainly ask for the tool. */
const byLikeness = (tools: ReadonlyArray<ToolDefinition>, { said }: Material) => {
  const words = new Set(splitSentences(said).filter((sentence) => !forbidding.test(sentence)).flatMap(contentWords))
  return tools.map((tool) => ({ tool, likeness: likeness(tool, words) })).toSorted((a, b) => b.likeness - a.likeness)
}

const likeness = ({ description, name }: ToolDefinition, words: ReadonlySet<string>): number => {
  const ofName = new Set(contentWords(fieldWords(name).join(" ")))
  const telling = [...ofName].filter((word) => !verbs.has(word))
  const ofDescription = new Set(contentWords((description ?? "").slice(0, 500)).filter((word) => !verbs.has(word)))
  const shared = (wanted: Iterable<string>): number => [...wanted].filter((word) => words.has(word)).length
  const share = telling.length === 0 ? 0 : shared(telling) / telling.length
  const described = shared(ofDescription)
  if (share === 1) return 1 + described / 100
  const wholeName = ofName.size > 1 && shared(ofName) === ofName.size
  return wholeName || (share >= 0.5 && described >= 2) || described >= 3 ? 1 : (share + described / 100) / 2
}
