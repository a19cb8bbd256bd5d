/** How much a model is to think: models take either a degree or a number of tokens, and clients may give the other. */
import { Schema } from "effect"
import type { Effort, Reasoning } from "./Conversation.ts"

/**
 * The catalogue's `options.thinking`: newer models take a degree of effort (the default), older ones a budget in tokens
 * (Claude up to 4.5, Gemini up to 2.5).
 */
export const Thinking = Schema.Literals(["effort", "budget"])

const budgets: { readonly [E in Effort]: number } = {
  minimal: 512,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536
}

type Degree = Extract<Reasoning, { readonly type: "effort" | "budget" }>

export const budgetOf = (reasoning: Degree): number =>
  reasoning.type === "budget" ? reasoning.tokens : budgets[reasoning.effort]

export const effortOf = (reasoning: Degree): Effort => {
  if (reasoning.type === "effort") return reasoning.effort
  return reasoning.tokens < 4_096 ? "low" : reasoning.tokens < 16_384 ? "medium" : "high"
}
