/** Chooses the tools that the engine calls, and their arguments. */
import { Effect, Predicate, Result } from "effect"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Conversation, ToolDefinition } from "../../shared/provider/dialects/conversation/Conversation.ts"
import { contentWords } from "../../shared/text/Words.ts"
import { jsonValue } from "./JsonAnswer.ts"
import type { Last } from "./Text.ts"

export interface PlannedCall {
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
}

/**
 * The tool calls of the answer; none if the engine answers with text.
 *
 * A required call is always made. Otherwise the engine calls each tool that the user's message names and that has no result
 * yet. Fails if the request requires a tool that it does not define, or if the engine cannot make the arguments.
 */
export const planCalls = Effect.fnUntraced(function*(conversation: Conversation, last: Last) {
  const chosen = yield* chooseTools(conversation, last)
  return yield* Effect.forEach(
    conversation.parallelToolCalls === false ? chosen.slice(0, 1) : chosen,
    (tool) => planCall(tool, last)
  )
})

const chooseTools = Effect.fnUntraced(function*({ toolChoice, tools }: Conversation, last: Last) {
  if (toolChoice.type === "none") return []
  if (toolChoice.type === "tool") {
    const tool = tools.find(({ name }) => name === toolChoice.name)
    if (tool !== undefined) return [tool]
    return yield* InvalidRequest.at("tool_choice", "names a tool that the request does not define")
  }
  const named = namedTools(tools, last)
  if (toolChoice.type === "auto" || named.length > 0) return named
  if (tools.length > 0) return tools.slice(0, 1)
  return yield* InvalidRequest.at("tool_choice", "requires a tool call, but the request has no tools")
})

const planCall = (
  { name, parameters, path }: ToolDefinition,
  { said }: Last
): Effect.Effect<PlannedCall, InvalidRequest> =>
  Effect.mapBoth(
    Effect.fromResult(Predicate.isReadonlyObject(parameters) ? jsonValue(parameters, said) : Result.succeed({})),
    {
      onFailure: (reason) => InvalidRequest.at(path ?? "tools", `has parameters whose schema ${reason}`),
      onSuccess: (value) => ({ name, arguments: JSON.stringify(Predicate.isReadonlyObject(value) ? value : {}) })
    }
  )

/** The tools that the message names and that have no result yet, in the order of their mention. */
const namedTools = (tools: ReadonlyArray<ToolDefinition>, { results, said }: Last): ReadonlyArray<ToolDefinition> => {
  const words = contentWords(said)
  return tools.filter(({ name }) => results.every(({ tool }) => tool !== name))
    .map((tool) => ({ tool, at: mention(tool.name, said.toLowerCase(), words) }))
    .filter(({ at }) => at !== -1).toSorted((a, b) => a.at - b.at).map(({ tool }) => tool)
}

/** Verbs in tool names, which do not distinguish tools. */
const verbs = new Set(
  contentWords("get fetch find look lookup search query list show create make do run call set read send write")
)

/** The position of a tool's name in the text, or of its words other than verbs, such as `weather` of `get_weather`; or -1. */
const mention = (name: string, text: string, words: ReadonlyArray<string>): number => {
  const at = text.indexOf(name.toLowerCase())
  if (at !== -1) return at
  const parts = contentWords(name.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").replaceAll("_", " "))
    .filter((word) => !verbs.has(word))
  return parts.length > 0 && parts.every((word) => words.includes(word)) ? text.indexOf(parts[0]!) : -1
}
