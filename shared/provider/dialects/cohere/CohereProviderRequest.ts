/** Encodes requests to Cohere's chat API. Its messages are those of chat completions, except the assistant's. */
import {
  type AnswerFormat,
  type ContentPart,
  type Conversation,
  type Reasoning,
  type Sampling,
  type SamplingSetting,
  type ToolDefinition,
  type Turn,
  warnOfSummary,
  withoutMarks
} from "../conversation/Conversation.ts"
import type { Target } from "../conversation/Dialect.ts"
import { foreignReasoning, type Losses } from "../conversation/Losses.ts"
import { textOf } from "../conversation/Media.ts"
import { budgetOf } from "../conversation/ReasoningEffort.ts"
import { withJsonWord } from "../fitting/JsonWord.ts"
import { cohereRules, fit } from "../fitting/SchemaSubset.ts"
import * as ChatCompletions from "../openai/ChatCompletionsProviderRequest.ts"

export const toRequest = (marked: Conversation, { losses, model, streams }: Target): object => {
  const conversation = withoutMarks(marked, losses)
  const { format, maxTokens, modalities, parallelToolCalls, reasoning, sampling = {}, seed, stop, user } = conversation
  if (modalities?.some((modality) => modality !== "text") === true) losses.refuseOf("modalities")
  if (user !== undefined) losses.warnOf("user")
  if (parallelToolCalls === false) losses.warnOf("parallelToolCalls")
  warnOfSummary(conversation, losses)
  return {
    model,
    messages: ChatCompletions.toMessages(withJsonWord(conversation), losses, { toAssistant, toPart }),
    stream: streams ? true : undefined,
    ...toTools(conversation, losses),
    response_format: toFormat(format, losses),
    stop_sequences: stop.length === 0 ? undefined : stop,
    max_tokens: maxTokens,
    seed,
    temperature: sampling.temperature,
    p: within("topP", sampling, losses),
    k: within("topK", sampling, losses),
    presence_penalty: within("presencePenalty", sampling, losses),
    frequency_penalty: within("frequencyPenalty", sampling, losses),
    thinking: toThinking(reasoning)
  }
}

/** The provider rejects values beyond these, which other dialects allow. */
const bounds = { topP: [0.01, 0.99], topK: [0, 500], presencePenalty: [0, 1], frequencyPenalty: [0, 1] } as const

const within = (name: SamplingSetting & keyof typeof bounds, sampling: Sampling, losses: Losses) => {
  const { [name]: value } = sampling
  if (value === undefined) return undefined
  const [least, most] = bounds[name]
  if (value > most) losses.warnOf(name, `was lowered to ${most}`)
  if (value < least) losses.warnOf(name, `was raised to ${least}`)
  return Math.min(most, Math.max(least, value))
}

/** The text before calls of tools is their plan. */
const toAssistant = ({ content, toolCalls }: Turn, losses: Losses): object => {
  const thoughts = content.flatMap((part) => {
    if (part.type !== "reasoning") return []
    if (part.signature?.origin === "cohere") return [{ type: "thinking", thinking: part.text }]
    losses.warn(part.path ?? "", foreignReasoning)
    return []
  })
  const text = ChatCompletions.toText(content)
  const isPlan = toolCalls.length > 0
  const said = isPlan || text === "" ? thoughts : [...thoughts, { type: "text", text }]
  return {
    role: "assistant",
    content: said.length > 0 ? said : isPlan ? undefined : "",
    ...(isPlan
      ? { tool_plan: text === "" ? undefined : text, tool_calls: toolCalls.map(ChatCompletions.toToolCall) }
      : {})
  }
}

const toPart = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  if (part.type !== "file" || textOf(part) !== undefined) return ChatCompletions.toPart(part, losses)
  losses.refuse(part.path ?? "")
  return []
}

/** A tool that must be called is the only one that the model gets. */
const toTools = ({ toolChoice, tools }: Conversation, losses: Losses): object => {
  if (tools.length === 0) return {}
  const offered = toolChoice.type === "tool" ? tools.filter(({ name }) => name === toolChoice.name) : tools
  const isStrict = offered.every(({ strict }) => strict === true)
  if (!isStrict) {
    for (const { path = "", strict } of offered) if (strict === true) losses.warn(path, "is not enforced strictly")
  }
  return {
    tools: offered.map((tool) => toTool(tool, isStrict, losses)),
    strict_tools: isStrict ? true : undefined,
    tool_choice: toolChoice.type === "auto" ? undefined : toolChoice.type === "none" ? "NONE" : "REQUIRED"
  }
}

const toTool = (
  { description, name, parameters = { type: "object", properties: {} }, path = "" }: ToolDefinition,
  isStrict: boolean,
  losses: Losses
): object => ({
  type: "function",
  function: { name, description, parameters: isStrict ? fit(parameters, cohereRules, path, losses) : parameters }
})

const toFormat = (format: AnswerFormat, losses: Losses): object | undefined => {
  switch (format.type) {
    case "text":
      return undefined
    case "json":
      return { type: "json_object" }
    case "jsonSchema":
      return {
        type: "json_object",
        json_schema: fit(format.schema, cohereRules, format.path ?? losses.nameOf("format"), losses)
      }
  }
}

const toThinking = (reasoning: Reasoning | undefined): object | undefined => {
  if (reasoning === undefined) return undefined
  if (reasoning.type === "off") return { type: "disabled" }
  return { type: "enabled", token_budget: reasoning.type === "auto" ? undefined : budgetOf(reasoning) }
}
