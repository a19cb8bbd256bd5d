/**
 * The tools of a request in the responses dialect, as other dialects know them: functions only, in no namespace. A custom tool,
 * which takes text, becomes a function with that text as its only argument.
 */
import { hash } from "node:crypto"
import type * as Contract from "../../../contract/operations/Responses.ts"
import * as Json from "../../json/Json.ts"
import type { ToolDefinition } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

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

/** The only argument of a custom tool's function. */
const argument = "input"

/** Tells the model the form of a custom tool's text; `undefined` if the form cannot be described. */
const describeFormat = (format: unknown): string | undefined => {
  const { definition, syntax, type = "text" } = Json.fields(format)
  if (typeof definition === "string") {
    return `The input must match this ${Json.string(syntax) ?? ""} grammar:\n${definition}`
  }
  return type === "text" ? "" : undefined
}

export const toDefinition = ({ functionName: name, path, tool }: OwnTool, losses: Losses): ToolDefinition => {
  if (tool.type === "function") {
    const { description, parameters, strict } = tool
    const isStrict = strict === true ? { strict } : {}
    return { name, description: description ?? undefined, parameters: parameters ?? {}, ...isStrict, path }
  }
  const format = describeFormat(tool.format)
  if (format === undefined) losses.warn(`${path}.format`)
  return {
    name,
    description: [tool.description, format].filter(Boolean).join("\n\n") || undefined,
    parameters: {
      type: "object",
      properties: { [argument]: { type: "string" } },
      required: [argument],
      additionalProperties: false
    },
    path
  }
}

export const toArguments = (input: string): string => JSON.stringify({ [argument]: input })

/** The text for a custom tool. A model may leave out the object around it. */
export const inputIn = (json: string): string => {
  const parsed = Json.parseBounded(json)
  return Json.string(Json.fields(parsed)[argument]) ?? Json.string(parsed) ?? json
}
