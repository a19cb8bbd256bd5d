/** What is to be seen of a request, wherever it is shown. */
import { Badge, Text } from "@mantine/core"
import type { UsageEvent } from "../../../../shared/usage/UsageEvent.ts"
import { count, counted } from "../data/Format.ts"

/** How a request can end. */
export const outcomes = {
  success: { color: "teal", text: "answered" },
  failure: { color: "red", text: "failed" },
  cancelled: { color: "gray", text: "cancelled" }
}

export const Outcome = ({ error, outcome }: Pick<UsageEvent, "outcome" | "error">) => (
  <div>
    <Badge color={outcomes[outcome].color} variant="light" tt="none">{outcomes[outcome].text}</Badge>
    {error === null ? null : <Text size="xs" c="dimmed">{error}</Text>}
  </div>
)

/** What was consumed, in the unit that the model is measured by. */
export const consumed = ({ usage }: UsageEvent): string => {
  if (usage === null) return "–"
  const tokens = usage.inputTokens + usage.outputTokens
  if ((usage.images ?? 0) > 0) return counted(usage.images ?? 0, "picture")
  if ((usage.seconds ?? 0) > 0) return `${count(usage.seconds ?? 0)} s`
  if (tokens > 0) return counted(tokens, "token")
  return (usage.characters ?? 0) > 0 ? counted(usage.characters ?? 0, "character") : "–"
}

export const addressOf = (id: string): string => `/requests?id=${encodeURIComponent(id)}`
