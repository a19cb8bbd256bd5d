/** The audit log of keys. */
import { Badge, Group, Stack, Text } from "@mantine/core"
import { CounterClockwiseClockIcon } from "@radix-ui/react-icons"
import type { KeyChange } from "../../../../shared/keys/KeyChange.ts"
import { defaults } from "../../../../shared/keys/KeySettings.ts"
import { ago, moment } from "../data/Format.ts"
import { Empty, Loaded } from "../parts/Feedback.tsx"
import { useKeyChanges } from "../data/Queries.ts"

const colors: Record<KeyChange["action"], string> = {
  created: "teal",
  edited: "iris",
  disabled: "gray",
  enabled: "teal",
  revoked: "red",
  erased: "red",
  cancelled: "gray",
  deleted: "red"
}

const defaultValues: Readonly<Record<string, unknown>> = defaults

const isDefault = ([setting, value]: [string, unknown]): boolean =>
  JSON.stringify(value) === JSON.stringify(defaultValues[setting])

const describe = ({ action, settings = {} }: KeyChange): string =>
  Object.entries(settings)
    .filter((setting) => action === "edited" || !(setting[0] === "name" || isDefault(setting)))
    .map(([setting, value]) => `${setting}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ")

const noChanges = (
  <Empty icon={CounterClockwiseClockIcon} title="No changes yet">
    The audit log shows who created, edited, disabled or revoked which key, or cancelled or deleted its tasks.
  </Empty>
)

export const KeyChanges = () => (
  <Loaded query={useKeyChanges()} empty={noChanges}>
    {(changes) => (
      <Stack component="ul" gap={0} p={0} m={0} aria-label="Key changes">
        {changes.map((change) => (
          <Group
            component="li"
            key={`${change.at.epochMilliseconds} ${change.key} ${change.action}`}
            align="flex-start"
            gap="md"
            p="md"
            wrap="nowrap"
            className="list-card"
          >
            <Badge color={colors[change.action]} variant="light" tt="capitalize" miw={84}>{change.action}</Badge>
            <Stack gap={2} flex={1} miw={0}>
              <Text style={{ overflowWrap: "anywhere" }}>
                <Text span fw={600}>{change.name}</Text>
                <Text span c="dimmed">{` by ${change.by}`}</Text>
              </Text>
              <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                <span className="mono">{change.key}</span>
                {describe(change) === "" ? "" : ` · ${describe(change)}`}
              </Text>
            </Stack>
            <Text size="sm" c="dimmed" title={moment(change.at)} style={{ whiteSpace: "nowrap" }}>
              {ago(change.at)}
            </Text>
          </Group>
        ))}
      </Stack>
    )}
  </Loaded>
)
