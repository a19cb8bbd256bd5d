/**
 * The custom tools of OpenAI's dialects, which take text, as other dialects know them: functions with that text as their only
 * argument.
 */
import * as Json from "../../json/Json.ts"
import type { ToolDefinition } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"

/** The only argument of a custom tool's function. */
const argument = "input"

/** Tells the model the form of a custom tool's text; `undefined` if the form cannot be described. */
const describeFormat = (format: unknown): string | undefined => {
  const { definition, grammar, syntax, type = "text" } = Json.fields(format)
  // chat completions have the grammar in an object of its own
  if (grammar !== undefined) return describeFormat(grammar)
  if (typeof definition === "string") {
    return `The input must match this ${Json.string(syntax) ?? ""} grammar:\n${definition}`
  }
  return type === "text" ? "" : undefined
}

interface CustomTool {
  readonly description?: string | null | undefined
  readonly format?: unknown
}

/** `formatPath`: where the request has the tool's format. */
export const toDefinition = (
  { description, format }: CustomTool,
  { formatPath, ...place }: Pick<ToolDefinition, "name" | "path"> & { readonly formatPath: string },
  losses: Losses
): ToolDefinition => {
  const form = describeFormat(format)
  if (form === undefined) losses.warn(formatPath)
  return {
    ...place,
    description: [description, form].filter(Boolean).join("\n\n") || undefined,
    parameters: {
      type: "object",
      properties: { [argument]: { type: "string" } },
      required: [argument],
      additionalProperties: false
    }
  }
}

export const toArguments = (input: string): string => JSON.stringify({ [argument]: input })

/** The text for a custom tool. A model may leave out the object around it. */
export const inputIn = (json: string): string => {
  const parsed = Json.parseBounded(json)
  return Json.string(Json.fields(parsed)[argument]) ?? Json.string(parsed) ?? json
}
