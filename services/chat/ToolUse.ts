/**
 * Chooses the tool that the engine calls, and its arguments. An agent executes what it is told to, so the engine calls one tool at a time,
 * and only one that the user has named: it cannot know what the others do.
 */
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
 * The tool call of the answer; none if the engine answers with text.
 *
 * The engine calls the first tool that the user's last text names and that has no result yet, or the only one that the request leaves to
 * it. Fails if the request requires another call, or if the engine cannot make the arguments.
 */
export const planCall = Effect.fnUntraced(function*(conversation: Conversation, last: Last) {
  const tool = yield* chooseTool(conversation, last)
  return tool === undefined ? undefined : yield* callOf(tool, last)
})

const chooseTool = Effect.fnUntraced(function*({ toolChoice, tools }: Conversation, last: Last) {
  if (toolChoice.type === "none") return undefined
  if (toolChoice.type === "tool") {
    const tool = tools.find(({ name }) => name === toolChoice.name)
    if (tool !== undefined) return tool
    return yield* InvalidRequest.at("tool_choice", "names a tool that the request does not define")
  }
  const [named] = namedTools(tools, last)
  if (toolChoice.type === "auto" || named !== undefined) return named
  if (tools.length === 1) return tools[0]
  return yield* InvalidRequest.at(
    "tool_choice",
    tools.length === 0
      ? "requires a tool call, but the request has no tools"
      : "requires a tool call, but the user's last text names none of the tools, and this model calls no other"
  )
})

const callOf = (
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

/** The tools without a result that the user's last text names, in the order of their mention. */
export const namedTools = (
  tools: ReadonlyArray<ToolDefinition>,
  { asked, results }: Last
): ReadonlyArray<ToolDefinition> => {
  const text = ` ${spaced(asked)} `
  const words = contentWords(text)
  const said = { text, lower: text.toLowerCase(), words: new Set(words), joined: ` ${words.join(" ")} ` }
  const called = new Set(results.map(({ tool }) => tool))
  return tools.filter(({ name }) => !called.has(name))
    .map((tool) => ({ tool, at: mention(tool.name, said) }))
    .filter(({ at }) => at !== -1).toSorted((a, b) => a.at - b.at).map(({ tool }) => tool)
}

/** The words of a text or of a tool's name, with one space between them: `getWeather` is `get Weather`. */
const spaced = (text: string): string =>
  text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").match(/[\p{L}\p{N}]+/gu)?.join(" ") ?? ""

/** Verbs of tools that only read. The user need not say them: "the weather" names `get_weather`, but "the file" not `write_file`. */
const readingVerbs = new Set(contentWords("get fetch find look lookup search query list show"))

/** A text, also in lower case, and its content words, also joined by spaces. */
interface Said {
  readonly text: string
  readonly lower: string
  readonly words: ReadonlySet<string>
  readonly joined: string
}

/**
 * The position of a tool's name in the text, with or without articles in between, or of its words other than reading verbs; or -1. The case
 * counts for names of one word: "write a poem" does not name `Write`.
 */
const mention = (name: string, { joined, lower, text, words }: Said): number => {
  const own = spaced(name)
  if (!own.includes(" ")) return text.indexOf(` ${own} `)
  const all = contentWords(own)
  const parts = all.filter((word) => !readingVerbs.has(word))
  // most names end here, before the text is searched
  if (!parts.every((word) => words.has(word))) return -1
  const first = all[0] === undefined ? -1 : lower.indexOf(all[0])
  if (first !== -1 && joined.includes(` ${all.join(" ")} `)) return first
  return parts.length > 0 && parts.length < all.length ? lower.indexOf(parts[0]!) : -1
}
