/** Decodes the tools of requests in the messages dialect, with the changes in the course of the conversation. */
import type * as Contract from "../../../contract/operations/Messages.ts"
import * as Json from "../../json/Json.ts"
import type { CacheControl, ToolDefinition } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

export const markOf = ({ cache_control: cache }: { readonly cache_control?: CacheControl | null }) =>
  cache ? { cache } : {}

export const toolNames = (tools: ReadonlyArray<ToolDefinition>): ReadonlySet<string> =>
  new Set(tools.map(({ name }) => name))

/** The tools that the model may use now: those of `tools`, and those that later messages add, without those that they remove. */
export const toTools = (
  { messages, tools = [] }: Pick<Contract.MessagesRequest, "messages" | "tools">,
  losses: Losses
): ReadonlyArray<ToolDefinition> => {
  const known = new Map<string, ToolDefinition>()
  const removed = new Set<string>()
  const add = (tool: ToolDefinition | undefined) => {
    if (tool !== undefined) known.set(tool.name, tool)
  }
  tools?.forEach((tool, index) => add(toTool(tool, `tools[${index}]`, losses)))
  messages.forEach((message, index) => {
    if (message.role !== "system" || !Array.isArray(message.content)) return
    message.content.forEach((block, at) => {
      if (block.type === "text") return
      const path = `messages[${index}].content[${at}]`
      const name = nameOf(block)
      if (name === undefined) return losses.refuseTool(`${path}.tool`)
      if (block.type === "tool_removal") return removed.add(name)
      removed.delete(name)
      const { definition } = block.tool
      if (definition !== undefined) add(toTool(Json.fields(definition), `${path}.tool.definition`, losses))
    })
  })
  return [...known.values()].filter(({ name }) => !removed.has(name))
}

/** The tool that a change names; `undefined` for tools of MCP servers, which only their provider calls. */
const nameOf = ({ tool }: Contract.ToolChangeBlock): string | undefined => {
  switch (tool["type"]) {
    case "tool_reference":
      return Json.string(tool["name"])
    case "tool_definition":
      return Json.string(Json.fields(tool["definition"])["name"])
    default:
      return undefined
  }
}

const toTool = (tool: Json.Fields, path: string, losses: Losses): ToolDefinition | undefined => {
  const { cache_control: cache, description, input_schema: parameters, name, strict, type } = tool
  if (parameters === undefined || typeof name !== "string") {
    losses.refuseTool(path)
    return undefined
  }
  if (type && type !== "custom") losses.warn(`${path}.type`)
  return {
    name,
    description: Json.string(description),
    parameters,
    ...(strict === true ? { strict: true } : {}),
    ...(cache ? { cache: Json.fields(cache) as CacheControl } : {}),
    path
  }
}
