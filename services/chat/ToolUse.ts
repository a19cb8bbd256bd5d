/** Decides which tools the engine calls, and with what arguments. */
import { Effect, Result } from "effect"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Conversation, ToolDefinition } from "../../shared/provider/dialects/conversation/Conversation.ts"
import { contentWords } from "../../shared/text/Words.ts"
import { isJsonObject, jsonValue } from "./JsonAnswer.ts"
import type { Last } from "./Text.ts"

export interface PlannedCall {
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
}

/**
 * The calls to answer with; none if the engine answers in words.
 *
 * A required call is always made. Left to choose, the engine calls the tools that the user's message names, each once:
 * when its result is there, the engine answers from that. Fails if a call is required of a tool that is not there, or if
 * the engine cannot make the arguments of a call.
 */
export const planCalls = Effect.fnUntraced(function*(conversation: Conversation, last: Last) {
  const chosen = yield* chooseTools(conversation, last)
  return yield* Effect.forEach(
    conversation.parallelToolCalls === false ? chosen.slice(0, 1) : chosen,
    (tool) => planCall(tool, last)
  )
})

const chooseTools = (
  { toolChoice, tools }: Conversation,
  last: Last
): Effect.Effect<ReadonlyArray<ToolDefinition>, InvalidRequest> => {
  const named = namedTools(tools, last)
  switch (toolChoice.type) {
    case "none":
      return Effect.succeed([])
    case "auto":
      return Effect.succeed(named)
    case "required":
      return tools.length === 0
        ? Effect.fail(InvalidRequest.at("tool_choice", "requires a tool call, but the request has no tools"))
        : Effect.succeed(named.length > 0 ? named : tools.slice(0, 1))
    case "tool": {
      const tool = tools.find(({ name }) => name === toolChoice.name)
      return tool === undefined
        ? Effect.fail(InvalidRequest.at("tool_choice", "names a tool that is not among the tools of the request"))
        : Effect.succeed([tool])
    }
  }
}

const planCall = (
  { name, parameters, path }: ToolDefinition,
  { said }: Last
): Effect.Effect<PlannedCall, InvalidRequest> => {
  if (!isJsonObject(parameters)) return Effect.succeed({ name, arguments: "{}" })
  return Result.match(jsonValue(parameters, said), {
    onFailure: (reason) => Effect.fail(InvalidRequest.at(path ?? "tools", `has parameters whose schema ${reason}`)),
    onSuccess: (value) => Effect.succeed({ name, arguments: JSON.stringify(isJsonObject(value) ? value : {}) })
  })
}

/** The tools that the message names and that have returned nothing yet, in the order of their mention. */
const namedTools = (tools: ReadonlyArray<ToolDefinition>, { results, said }: Last): ReadonlyArray<ToolDefinition> => {
  const done = new Set(results.map(({ tool }) => tool))
  return tools.filter(({ name }) => !done.has(name))
    .map((tool) => ({ tool, at: mention(tool.name, said) }))
    .filter(({ at }) => at !== -1)
    .toSorted((a, b) => a.at - b.at)
    .map(({ tool }) => tool)
}

/** Verbs that tools' names begin with; they say nothing of what a tool is for. */
const verbs = new Set(
  contentWords("get fetch find look lookup search query list show create make do run call set read")
)

/** Where the text has the tool's name, or all the words that it is made of, such as `weather` of `get_weather`; or -1. */
const mention = (name: string, text: string): number => {
  const lower = text.toLowerCase()
  const at = lower.indexOf(name.toLowerCase())
  if (at !== -1) return at
  const said = contentWords(text)
  const parts = contentWords(name.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").replaceAll(/[_.-]/gu, " "))
  const telling = parts.filter((word) => !verbs.has(word))
  const places = telling.map((word) => said.includes(word) ? lower.indexOf(word.slice(0, 4)) : -1)
  return places.length === 0 || places.includes(-1) ? -1 : Math.min(...places)
}
