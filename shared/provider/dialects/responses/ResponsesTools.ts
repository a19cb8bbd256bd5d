/** The tools of a request in the responses dialect, as other dialects know them: functions only, in no namespace. */
import { hash } from "node:crypto"
import type * as Contract from "../../../contract/operations/Responses.ts"
import type { ToolDefinition } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"
import * as CustomTools from "../openai/CustomTools.ts"

type Own = Extract<Contract.Tool, { readonly type: "function" | "custom" }>

/** A tool of the client, with its place in the request. */
export interface OwnTool {
  readonly tool: Own
  readonly namespace: string | undefined
  /** The function's name in other dialects. */
  readonly functionName: string
  readonly path: string
}

/** A tool of the provider. */
export interface HostedTool {
  readonly type: string
  readonly path: string
}

const longestName = 64

/** The name of a namespace's tool in other dialects, which allow 64 characters. */
export const functionNameOf = (name: string, namespace: string | null | undefined): string => {
  if (!namespace) return name
  const joined = `${namespace}__${name}`
  return joined.length <= longestName
    ? joined
    : `${joined.slice(0, longestName - 9)}_${hash("sha256", joined, "hex").slice(0, 8)}`
}

const isOwn = (tool: Contract.Tool): tool is Own => tool.type === "function" || tool.type === "custom"
const isNamespace = (tool: Contract.Tool): tool is Extract<Contract.Tool, { readonly type: "namespace" }> =>
  tool.type === "namespace"

/** Both kinds of tools, of the request itself and of the items that add some. */
export const toolsIn = (
  { input, tools }: Contract.ResponsesRequest
): { readonly own: ReadonlyArray<OwnTool>; readonly hosted: ReadonlyArray<HostedTool> } => {
  const own: Array<OwnTool> = []
  const hosted: Array<HostedTool> = []
  const add = (tools: ReadonlyArray<Contract.Tool>, path: string, namespace?: string): void => {
    for (const [index, tool] of tools.entries()) {
      const at = `${path}[${index}]`
      if (isOwn(tool)) own.push({ tool, namespace, functionName: functionNameOf(tool.name, namespace), path: at })
      else if (isNamespace(tool)) add(tool.tools, `${at}.tools`, tool.name)
      else hosted.push({ type: tool.type, path: at })
    }
  }
  add(tools ?? [], "tools")
  for (const [index, item] of typeof input === "string" ? [] : (input ?? []).entries()) {
    if (item.type === "additional_tools" && "tools" in item) add(item.tools, `input[${index}].tools`)
  }
  return { own, hosted }
}

export const toDefinition = ({ functionName: name, path, tool }: OwnTool, losses: Losses): ToolDefinition => {
  if (tool.type === "custom") {
    return CustomTools.toDefinition(tool, { name, path, formatPath: `${path}.format` }, losses)
  }
  const { description, parameters, strict } = tool
  const isStrict = strict === true ? { strict } : {}
  return { name, description: description ?? undefined, parameters: parameters ?? {}, ...isStrict, path }
}
