/** Facts about a key, for tables and cards. */
import { Badge, Box, Group, Progress, Stack, Text } from "@mantine/core"
import { DateTime } from "effect"
import { defaults } from "../../../../shared/keys/KeySettings.ts"
import type { KeyView } from "../../api/Keys.ts"
import { count, counted, dayOf, lastDay, money, short } from "../data/Format.ts"

type State = "active" | "disabled" | "expired"

export const stateOf = ({ disabled, expiresAt }: KeyView): State => {
  if (disabled) return "disabled"
  return expiresAt !== null && DateTime.isPastUnsafe(expiresAt) ? "expired" : "active"
}

const colors = { active: "teal", disabled: "gray", expired: "orange" }

export const KeyState = ({ of }: { readonly of: KeyView }) => {
  const state = stateOf(of)
  return <Badge color={colors[state]} variant="light" tt="capitalize" flex="none" data-testid="state">{state}</Badge>
}

export const KeyName = ({ of }: { readonly of: KeyView }) => (
  <Box miw={0}>
    <Text fw={600} lineClamp={2} style={{ overflowWrap: "anywhere" }}>{of.name}</Text>
    <Text size="xs" c="dimmed" className="mono">{of.id}</Text>
  </Box>
)

type Shared = Pick<KeyView, "requestsPerMinute" | "tokensPerMinute" | "concurrentRequests" | "allowedModels">

/** The limits that keys and teams have. */
export const sharedLimitsOf = (of: Shared): ReadonlyArray<string> => [
  ...(of.requestsPerMinute === null ? [] : [`${short(of.requestsPerMinute)} req/min`]),
  ...(of.tokensPerMinute === null ? [] : [`${short(of.tokensPerMinute)} tok/min`]),
  ...(of.concurrentRequests === null ? [] : [`${count(of.concurrentRequests)} concurrent`]),
  ...(of.allowedModels.includes("*") ? [] : [counted(of.allowedModels.length, "model")])
]

const limitsOf = (key: KeyView): ReadonlyArray<string> => [
  ...sharedLimitsOf(key),
  ...(key.batchConcurrency === defaults.batchConcurrency
    ? []
    : [`${count(key.batchConcurrency)} batch lines`]),
  ...(key.priorityClass === "standard" ? [] : [key.priorityClass]),
  ...(key.weight === 1 ? [] : [`weight ${key.weight}`]),
  ...(key.expiresAt === null ? [] : [`until ${dayOf(key.expiresAt)}`])
]

export const KeyLimits = ({ of }: { readonly of: KeyView }) => <Limits limits={limitsOf(of)} />

export const Limits = ({ limits }: { readonly limits: ReadonlyArray<string> }) => {
  if (limits.length === 0) return <Text size="sm" c="dimmed">No limits</Text>
  return (
    <Group gap={4}>
      {limits.map((limit) => <Badge key={limit} variant="default" tt="none" fw={500}>{limit}</Badge>)}
    </Group>
  )
}

/** This month's spend of a key or team, and the budget if there is one. */
export const Spend = ({ of }: {
  readonly of: Pick<KeyView, "monthlyBudgetUsd" | "requestsThisMonth" | "spentThisMonthUsd">
}) => {
  const { monthlyBudgetUsd, requestsThisMonth, spentThisMonthUsd } = of
  const share = monthlyBudgetUsd === null ? 0 : spentThisMonthUsd / monthlyBudgetUsd
  return (
    <Stack gap={2} miw={110}>
      <Text size="sm" className="numeric">
        {money(spentThisMonthUsd)}
        {monthlyBudgetUsd === null ? null : <Text span c="dimmed">{` of ${money(monthlyBudgetUsd)}`}</Text>}
      </Text>
      {monthlyBudgetUsd === null ? null : (
        <Progress
          size="sm"
          value={Math.min(100, share * 100)}
          color={share >= 1 ? "red" : share > 0.8 ? "orange" : "iris"}
          aria-label="Budget used"
        />
      )}
      <Text size="xs" c="dimmed" className="numeric">{counted(requestsThisMonth, "request")}</Text>
    </Stack>
  )
}

export const KeyLastUse = ({ of }: { readonly of: KeyView }) => (
  <Text size="sm">{of.lastUsedOn === null ? "Never" : lastDay(of.lastUsedOn)}</Text>
)
