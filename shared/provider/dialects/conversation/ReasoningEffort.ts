/** Translates between efforts and token budgets: models take one of them, and clients may send the other. */
import { Schema } from "effect"
import type { Effort, Reasoning } from "./Conversation.ts"
import type { Losses } from "./Losses.ts"

/**
 * The catalogue's `options.thinking`: newer models take an effort (the default), older ones a budget in tokens (Claude up to
 * 4.5, Gemini up to 2.5).
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

/** Warns if the client sent a budget. */
export const effortOf = (reasoning: Degree, losses: Losses): Effort => {
  if (reasoning.type === "effort") return reasoning.effort
  const effort = reasoning.tokens < 4_096 ? "low" : reasoning.tokens < 16_384 ? "medium" : "high"
  losses.warnOf("reasoning", `was replaced by the effort ${effort}`)
  return effort
}

/** For providers without an effort above `high`. */
export const effortUpToHigh = (reasoning: Degree, losses: Losses): "minimal" | "low" | "medium" | "high" => {
  const effort = effortOf(reasoning, losses)
  if (effort !== "xhigh" && effort !== "max") return effort
  losses.warnOf("reasoning", "was lowered to high")
  return "high"
}
