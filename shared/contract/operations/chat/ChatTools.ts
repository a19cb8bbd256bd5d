/** The tools of chat completions, the calls of them, and the choice among them. */
import { Schema } from "effect"
import { cacheControl, constant, field, JsonObject, optional } from "../../Fields.ts"

const FunctionCall = Schema.Struct({
  id: field(Schema.String, "The result's `tool_call_id` repeats it."),
  type: constant("function", "A function of the client."),
  function: field(
    Schema.Struct({
      name: field(Schema.String, "One of the names in `tools`."),
      arguments: field(Schema.String, "JSON as the model wrote it, not necessarily valid.")
    }),
    "The function and its arguments."
  )
})
const CustomCall = Schema.Struct({
  id: field(Schema.String, "The result's `tool_call_id` repeats it."),
  type: constant("custom", "A tool that takes text."),
  custom: field(
    Schema.Struct({
      name: field(Schema.String, "One of the names in `tools`."),
      input: field(Schema.String, "Text as the model wrote it.")
    }),
    "The tool and its input."
  )
})
export const ToolCall = Schema.Union([FunctionCall, CustomCall])

/** A call of a conversation, with the signature that continues it. */
const SignedCall = Schema.Struct({
  ...FunctionCall.fields,
  extra_content: optional(
    JsonObject,
    "The signature of the reasoning before the call, in `google.thought_signature` as on Google's endpoint. Send it back unchanged."
  )
})
/** A call in a message of a conversation. */
export const MessageCall = Schema.Union([SignedCall, CustomCall])

const FunctionTool = Schema.Struct({
  type: constant("function", "A function of the client."),
  function: field(
    Schema.Struct({
      name: field(Schema.NonEmptyString, "The model's calls name the function by it."),
      description: optional(Schema.String, "Tells the model when and how to call the function."),
      parameters: optional(JsonObject, "JSON Schema of the arguments."),
      strict: optional(Schema.Boolean, "Follow the schema exactly.", false)
    }),
    "The function, as the model sees it."
  ),
  ...cacheControl
})

const CustomTool = Schema.Struct({
  type: constant("custom", "A tool that takes text."),
  custom: field(
    Schema.Struct({
      name: field(Schema.NonEmptyString, "The model's calls name the tool by it."),
      description: optional(Schema.String, "Tells the model when and how to call the tool."),
      format: optional(JsonObject, "The form of the text: any, or that of a grammar.")
    }),
    "The tool, as the model sees it."
  ),
  ...cacheControl
})

const ownTypes = ["function", "custom", "allowed_tools"]
const otherType = Schema.NonEmptyString.check(
  Schema.makeFilter((type) => !ownTypes.includes(type), {
    expected: "a type other than function and custom",
    toJsonSchema: () => ({ not: { enum: ownTypes } })
  })
)
const OtherTool = Schema.Struct({
  type: field(otherType, "Another type. Only some providers have it, and read its other fields.")
})
export const Tool = Schema.Union([FunctionTool, CustomTool, OtherTool])
export type Tool = typeof Tool.Type

const named = (what: string) =>
  field(Schema.Struct({ name: field(Schema.NonEmptyString, "One of the names in `tools`.") }), what)
const FunctionChoice = Schema.Struct({
  type: constant("function", "Call this function."),
  function: named("The function to call.")
})
const CustomChoice = Schema.Struct({ type: constant("custom", "Call this tool."), custom: named("The tool to call.") })
const AllowedTools = Schema.Struct({
  type: constant("allowed_tools", "Call only these tools."),
  allowed_tools: field(
    Schema.Struct({
      mode: field(Schema.Literals(["auto", "required"]), "Whether one must be called."),
      tools: field(Schema.Array(JsonObject), "The tools, each with its type and name, as in a choice of it.")
    }),
    "The tools, and whether to call one."
  )
})

export const ToolChoice = Schema.Union([
  Schema.Literals(["none", "auto", "required"]),
  FunctionChoice,
  CustomChoice,
  AllowedTools,
  OtherTool
])
