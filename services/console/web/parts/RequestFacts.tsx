/** Facts about a request, for every page that shows one. */
import { Badge, Text } from "@mantine/core"
import type { Guardrail, UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { count, counted } from "../data/Format.ts"

/** Outcomes of requests. */
export const outcomes = {
  success: { color: "teal", text: "answered" },
  failure: { color: "red", text: "failed" },
  cancelled: { color: "gray", text: "cancelled" }
}

export const Outcome = ({ error, guardrail, outcome }: Pick<UsageEvent, "outcome" | "error" | "guardrail">) => (
  <div>
    <Badge color={outcomes[outcome].color} variant="light" tt="none">{outcomes[outcome].text}</Badge>
    {error === null ? null : <Text size="xs" c="dimmed">{error}</Text>}
    {guardrail === undefined ? null : <Text size="xs" c="dimmed">{checksOf(guardrail)}</Text>}
  </div>
)

/** The result of the guardrail's checks. */
const checksOf = (guardrail: Guardrail): string =>
  Object.entries(guardrail).map(([direction, outcome]) => `${direction} ${outcome}`).join(", ")

/** Usage of a request in its model's unit. */
export const usageText = ({ usage }: UsageEvent): string => {
  if (usage === null) return "–"
  const tokens = usage.inputTokens + usage.outputTokens
  if ((usage.images ?? 0) > 0) return counted(usage.images ?? 0, "image")
  if ((usage.seconds ?? 0) > 0) return `${count(usage.seconds ?? 0)} s`
  if (tokens > 0) return `${usage.estimatedTokens ? "about " : ""}${counted(tokens, "token")}`
  return (usage.characters ?? 0) > 0 ? counted(usage.characters ?? 0, "character") : "–"
}

export const requestPath = (id: string): string => `/requests?id=${encodeURIComponent(id)}`

/** The provider, the number of calls if there were several, and how many of them may be billed without an answer. */
export const providerOf = ({ attempts, provider, repeatedCalls }: UsageEvent): string =>
  [
    provider ?? "–",
    ...(attempts > 1 ? [`${attempts} calls`] : []),
    ...(repeatedCalls ? [`${repeatedCalls} may be billed without an answer`] : [])
  ].join(", ")
